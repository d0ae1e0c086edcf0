// planned with threads, each on a stream of its own: the plan of a run of several threads is recorded, serves them when
// they come in that order again, and serves them still when they come in another one.
#include <tenon/core/units.h>
#include <tenon/memory/packing/plan_file.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/runtime/allocator_spec.h>

#include <gtest/gtest.h>

#include <support/scratch_folder.h>
#include <support/stress.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace tenon {
namespace {

constexpr int kThreads = 3;
constexpr int kSteps = 3, kActivations = 40, kWeights = 10;

/// Which bytes are in a block now, told by several threads.
class Taken {
 public:
  void take(const Block& block) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t begin = Address(block.data), end = begin + block.bytes;
    const auto after = blocks_.lower_bound(begin);
    EXPECT_TRUE(after == blocks_.end() || end <= after->first) << "two blocks share bytes";
    EXPECT_TRUE(after == blocks_.begin() || std::prev(after)->second <= begin) << "two blocks share bytes";
    blocks_[begin] = end;
  }
  void give(const Block& block) {
    const std::lock_guard lock(mutex_);
    blocks_.erase(Address(block.data));
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> blocks_;
};

/// Whose turn it is: told by `next`, which gets whose it was and who has not ended yet.
class Turns {
 public:
  using Next = std::function<int(int last, const std::vector<int>& left)>;
  explicit Turns(Next next) : next_(std::move(next)) {
    for (int i = 0; i < kThreads; ++i) left_.push_back(i);
    turn_ = next_(-1, left_);
  }
  /// Waits for a turn; the next call ends it.
  void take(int thread) {
    std::unique_lock lock(mutex_);
    if (holds_ == thread) pass(thread);
    changed_.wait(lock, [&] { return turn_ == thread && holds_ == kNobody; });
    holds_ = thread;
  }
  void end(int thread) {
    const std::lock_guard lock(mutex_);
    std::erase(left_, thread);
    pass(thread);
  }

 private:
  static constexpr int kNobody = -1;
  void pass(int thread) {
    holds_ = kNobody;
    if (!left_.empty()) turn_ = next_(thread, left_);
    changed_.notify_all();
  }

  const Next next_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> left_;
  int turn_ = 0, holds_ = kNobody;
};

int in_turn(int last, const std::vector<int>& left) {
  const auto next = std::ranges::upper_bound(left, last);
  return next != left.end() ? *next : left.front();
}

/// A training run on one stream: weights that stay, then steps of activations that go in a shuffled order.
void train(AllocatorStack& stack, Taken& taken, int thread, const std::function<void()>& next_turn) {
  std::mt19937_64 sizes(static_cast<std::uint64_t>(47 + thread));
  const StreamRef stream{static_cast<std::uint64_t>(thread) + 1};
  const auto allocate = [&](std::size_t bytes) {
    next_turn();
    const Block block = stack.allocate({.bytes = bytes, .stream = stream});
    taken.take(block);
    return block;
  };
  const auto free = [&](const Block& block) {
    next_turn();
    taken.give(block);
    stack.deallocate(block);
  };
  std::vector<Block> weights;
  for (int i = 0; i < kWeights; ++i) weights.push_back(allocate((1 + sizes() % 64) * 64 * KiB));
  const std::uint64_t of_steps = sizes();
  for (int step = 0; step < kSteps; ++step) {
    std::mt19937_64 random(of_steps);
    std::vector<Block> live;
    for (int i = 0; i < kActivations; ++i) {
      live.push_back(allocate(1 + random() % (4 * MiB)));
      if (live.size() <= 8) continue;
      std::swap(live[random() % live.size()], live.back());
      free(live.back());
      live.pop_back();
    }
    for (const Block& block : live) free(block);
  }
  for (const Block& block : weights) free(block);
}

class PlannedThreads : public testing::Test {
 protected:
  /// Returns the peak of what was taken from the device. `next` null: each thread as fast as it can.
  static std::size_t play(const std::string& spec, const Turns::Next& next) {
    AddressOnlySource device;
    const auto stack = AllocatorStack::make(device, allocator_from_spec(spec));
    Taken taken;
    Turns turns(next ? next : in_turn);
    test::on_threads(kThreads, [&](int thread) {
      train(*stack, taken, thread, [&] {
        if (next) turns.take(thread);
      });
      if (next) turns.end(thread);
    });
    stack->check_invariants();
    const auto peak = static_cast<std::size_t>(stack->stats().reserved_bytes.peak);
    stack->trim(0);
    EXPECT_EQ(device.used_bytes(), 0U);
    return peak;
  }
  /// Of a run whose threads came in turn.
  static packing::Plan recorded() {
    play("planned:planning_seconds=0.5,record=" + file(), in_turn);
    return packing::read_plan(file());
  }
  static std::string file() { return test::scratch_folder() + "threads.plan"; }
  static std::string from_the_plan() { return "planned:mismatch=error,plan=" + file(); }
};

TEST_F(PlannedThreads, ThePlanOfARunOfThreadsHasAllThatTheyAskedFor) {
  const packing::Plan plan = recorded();
  EXPECT_EQ(plan.blocks.size(), static_cast<std::size_t>(kThreads * (kWeights + kSteps * kActivations)));
  std::map<std::uint32_t, int> of_stream;
  for (const packing::PlannedBlock& block : plan.blocks) ++of_stream[block.stream];
  EXPECT_EQ(of_stream.size(), static_cast<std::size_t>(kThreads));
}

TEST_F(PlannedThreads, ThreadsThatComeInTheRecordedOrderTakeThePlansHeight) {
  const packing::Plan plan = recorded();
  EXPECT_LE(play(from_the_plan(), in_turn), align_up(plan.height, 2 * MiB));
}

TEST_F(PlannedThreads, ThreadsThatComeOneAfterTheOtherFindTheirPlacesFree) {
  const packing::Plan plan = recorded();
  const auto one_by_one = [](int, const std::vector<int>& left) { return left.back(); };  // the last one first, too
  EXPECT_LE(play(from_the_plan(), one_by_one), align_up(plan.height, 2 * MiB));
}

/// A place may still be taken by a block that another thread should have freed by then: the request goes beside it.
TEST_F(PlannedThreads, ThreadsThatComeInAnyOrderTakeAtMostHalfMoreThanThePlansHeight) {
  const packing::Plan plan = recorded();
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto drawn = [&](int, const std::vector<int>& left) { return left[random() % left.size()]; };
    EXPECT_LE(play(from_the_plan(), drawn), plan.height + plan.height / 2);
  }
}

TEST_F(PlannedThreads, ThreadsThatRunFreelyGetBytesOfTheirOwn) {
  recorded();
  for (int round = 0; round < test::stress_rounds(3); ++round) play(from_the_plan(), nullptr);
}

}  // namespace
}  // namespace tenon
