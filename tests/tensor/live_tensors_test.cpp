// The list of tensors and that of nodes: who is on them, how long they are kept, and that a standstill stops the
// others.
#include <tenon/autograd/autograd.h>
#include <tenon/autograd/leaks/last_uses.h>
#include <tenon/core/scope/scope.h>
#include <tenon/device/device_state.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/live_tensors.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using memory::LastUses;
using scopes::are_lives_wanted;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// The list while it lives.
class Listing {
 public:
  Listing() { list_tensors(); }
  ~Listing() { stop_listing_tensors(); }
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;
};

std::vector<const TensorImpl*> listed() {
  std::vector<const TensorImpl*> tensors;
  for (const ListedTensor& one : listed_tensors()) tensors.push_back(one.tensor);
  return tensors;
}

TEST(LiveTensors, ThatWereMadeUnderTheListAreOnItFromTheOldestUntilTheyEnd) {
  const Tensor before = empty({1});
  const Listing list;
  std::vector<Tensor> made;
  std::vector<const TensorImpl*> want;
  for (int i = 0; i < 50; ++i) {
    made.push_back(empty({1}));
    want.push_back(&made.back().impl());
  }
  EXPECT_EQ(listed(), want);
  // What ends is gone, and what is made at its place is younger than all.
  made.erase(made.begin() + 10);
  want.erase(want.begin() + 10);
  EXPECT_EQ(listed(), want);
  made.push_back(empty({1}));
  want.push_back(&made.back().impl());
  EXPECT_EQ(listed(), want);
  const std::vector<ListedTensor> tensors = listed_tensors();
  for (std::size_t i = 1; i < tensors.size(); ++i) ASSERT_LT(tensors[i - 1].number, tensors[i].number);
}

TEST(LiveTensors, AreNoneWithoutAList) {
  const Tensor x = empty({1});
  EXPECT_FALSE(are_lives_wanted());
  list_older_tensor(&x.impl());
  EXPECT_THAT(listed(), IsEmpty());
}

TEST(LiveTensors, SayWhichThreadMadeThemAndWhereAndOneThatIsOlderSaysNoPlace) {
  const Tensor parameter = empty({1});
  const Listing list;
  list_older_tensor(&parameter.impl());
  const Tensor here = empty({1});
  Tensor there;
  std::uint32_t other = 0;
  std::thread([&] {
    other = scopes::thread_number();
    there = empty({1});
  }).join();
  list_older_tensor(&here.impl());  // is on it already: nothing changes
  const std::vector<ListedTensor> tensors = listed_tensors();
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].tensor, &parameter.impl());
  EXPECT_TRUE(tensors[0].is_older);
  EXPECT_EQ(tensors[0].made_at, 0u);
  EXPECT_THAT(listed_frames(tensors[0].made_at), IsEmpty());
  EXPECT_EQ(tensors[1].tensor, &here.impl());
  EXPECT_FALSE(tensors[1].is_older);
  EXPECT_FALSE(listed_frames(tensors[1].made_at).empty());
  EXPECT_EQ(tensors[1].thread, scopes::thread_number());
  EXPECT_EQ(tensors[2].thread, other);
  EXPECT_NE(other, scopes::thread_number());
}

TEST(LiveTensors, AreListedUntilTheLastWhoAskedForItEndsAndThenForgotten) {
  Tensor first, second;
  {
    const Listing outer;
    {
      const Listing inner;
      first = empty({1});
    }
    EXPECT_TRUE(are_lives_wanted());
    second = empty({1});
    EXPECT_THAT(listed(), ElementsAre(&first.impl(), &second.impl()));
  }
  EXPECT_FALSE(are_lives_wanted());
  EXPECT_THAT(listed(), IsEmpty());
  const Tensor unlisted = empty({1});
  const Listing again;
  EXPECT_THAT(listed(), IsEmpty()) << "what was on a former list is not on this one";
  const Tensor third = empty({1});
  EXPECT_THAT(listed(), ElementsAre(&third.impl()));
}

TEST(LiveTensors, AnEndWithoutABeginningIsNone) {
  stop_listing_tensors();
  EXPECT_FALSE(are_lives_wanted());
  const Tensor before = empty({1});
  {
    const Listing list;
    EXPECT_TRUE(are_lives_wanted());
    const Tensor x = empty({1});
    EXPECT_THAT(listed(), ElementsAre(&x.impl()));
  }
  EXPECT_FALSE(are_lives_wanted());
}

class ListsOfNodes : public ::testing::Test {
 protected:
  using Uses = std::optional<LastUses>;
  /// How many blocks the nodes keep that it knows.
  static std::size_t kept(const Uses& uses) { return uses->kept_for_backward().size(); }
  /// A history whose one node keeps a block of its own.
  static Tensor history() { return ones({1}, requires_grad()).exp(); }

  AllocatorStack& stack_ = device_state(Device(kCPU)).allocator();
  memory::Attribution attribution_{stack_, stack_.stats()};
};

TEST_F(ListsOfNodes, GoOnUntilTheLastWhoWantsOneEnds) {
  Uses first, second, third;
  first.emplace(attribution_);
  const Tensor a = history();
  second.emplace(attribution_);
  third.emplace(attribution_);
  const Tensor b = history();
  first.reset();
  EXPECT_TRUE(are_lives_wanted());
  const Tensor c = history();
  EXPECT_EQ(kept(second), 3u);
  second.reset();
  EXPECT_TRUE(are_lives_wanted());
  EXPECT_EQ(kept(third), 3u);
  third.reset();
  EXPECT_FALSE(are_lives_wanted());
  first.emplace(attribution_);
  EXPECT_EQ(kept(first), 0u) << "what was on a former list is not on this one";
}

TEST_F(ListsOfNodes, AndOfTensorsOutliveEachOther) {
  Uses uses;
  for (const bool nodes_end_first : {true, false}) {
    std::optional<Listing> list;
    list.emplace();
    const Tensor before = history();
    uses.emplace(attribution_);
    const Tensor under_both = history();
    EXPECT_EQ(kept(uses), 2u) << "a list of tensors lists nodes, too";
    if (nodes_end_first)
      uses.reset();
    else
      list.reset();
    EXPECT_TRUE(are_lives_wanted());
    const std::size_t on_list = listed_tensors().size();
    const Tensor under_one = history();
    if (nodes_end_first) {
      EXPECT_GT(listed_tensors().size(), on_list);
    } else {
      EXPECT_EQ(on_list, 0u);
      EXPECT_EQ(listed_tensors().size(), 0u);
      EXPECT_EQ(kept(uses), 3u);
    }
    uses.reset();
    list.reset();
    EXPECT_FALSE(are_lives_wanted());
  }
}

TEST_F(ListsOfNodes, LeaveOutNodesThatEnded) {
  Uses uses;
  uses.emplace(attribution_);
  const Tensor stays = history();
  history();
  EXPECT_EQ(kept(uses), 1u);
}

/// Another thread that wants to lock the lists, and what it has come to.
class Waiter {
 public:
  explicit Waiter(bool by_a_change) {
    thread_ = std::thread([this, by_a_change] {
      id_ = static_cast<int>(::syscall(SYS_gettid));
      if (by_a_change) {
        const ListedChange change;
      } else {
        const Standstill standstill;
      }
      is_through_ = true;
    });
  }
  ~Waiter() { thread_.join(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// Whether it waits; comes back when that is known.
  bool waits() const {
    const std::string futex = std::to_string(SYS_futex) + " ";
    while (!is_through_) {
      std::string call;
      if (id_ != 0) std::getline(std::ifstream("/proc/self/task/" + std::to_string(id_) + "/syscall"), call);
      if (call.starts_with(futex)) return true;
      std::this_thread::yield();
    }
    return false;
  }

 private:
  std::atomic<int> id_ = 0;
  std::atomic<bool> is_through_ = false;
  std::thread thread_;
};

TEST(Standstills, StopOtherThreadsUntilTheyEnd) {
  const Listing list;
  for (const bool by_a_change : {true, false}) {
    std::optional<Standstill> outer(std::in_place), inner(std::in_place);
    const Waiter other(by_a_change);
    EXPECT_TRUE(other.waits());
    inner.reset();
    EXPECT_TRUE(other.waits()) << "the outer one lives";
    { const Tensor mine = empty({1}); }  // whose standstill it is goes on
    { const ListedChange mine; }
    EXPECT_TRUE(other.waits());
    outer.reset();
  }
}

TEST(Standstills, AreOfWhatIsListedAlone) {
  std::optional<Standstill> standstill(std::in_place);
  const Waiter other(/*by_a_change=*/true);
  EXPECT_FALSE(other.waits()) << "nothing is listed: nobody asks for the lock";
  { const ListedChange mine; }
  const Waiter another(/*by_a_change=*/false);
  EXPECT_TRUE(another.waits()) << "a change that took no lock gives none back";
  standstill.reset();
}

TEST(Standstills, OfAChangeEndWithItAlsoWhereTheListEndedMeanwhile) {
  std::optional<Listing> list(std::in_place);
  {
    const ListedChange change;
    list.reset();
  }
  const Waiter other(/*by_a_change=*/false);
  EXPECT_FALSE(other.waits());
}

}  // namespace
}  // namespace tenon
