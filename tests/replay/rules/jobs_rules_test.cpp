// Replays in processes of their own: how each way to end is called, what is left of those that are given up, and how
// many run at a time.
#include "replay/support.h"

#include <tenon/replay/jobs/process_pool.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using ::testing::ElementsAre;

constexpr char kFourEvents[] = "a 0 1024 0\nf 0\na 1 512 0\nf 1\n";

enum class End { kWhenMade, kAtThirdEvent, kInTimedPass };

/// Ends its process where it is told to.
StackConfig ending_policy(End end, int signal) {
  return policy_of("ending", [=](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    class Ending final : public PlainPolicy {
     public:
      Ending(MemorySource& source, End end, int signal, int which)
          : PlainPolicy(source), end_(end), signal_(signal), which_(which) {
        if (end == End::kWhenMade) leave();
      }
      Block allocate(const Request& request) override {
        if (end_ == End::kAtThirdEvent && request.bytes == 512) leave();
        if (end_ == End::kInTimedPass && which_ == 2) leave();
        return PlainPolicy::allocate(request);
      }

     private:
      void leave() const {
        if (signal_ != 0) std::raise(signal_);
        ::_exit(7);
      }
      End end_;
      int signal_, which_;
    };
    static int made = 0;  // in a child's memory: each begins with none
    return std::make_unique<Ending>(context.source, end, signal, ++made);
  });
}

TEST(JobEnds, AreCalledByTheirSignalOrCodeAndByWhereTheyCame) {
  const Trace trace = read_one(kFourEvents);
  const JobOptions options{
      .capacity_bytes = 4096, .timed_passes = 1, .time_each_call = false, .check_placement = false};
  const auto row_of = [&](End end, int signal) {
    const StackConfig policy = ending_policy(end, signal);
    return run_jobs({{&trace, &policy, "label", options}}, 1).front();
  };
  const std::string killed = "crashed: Killed (the system may have run out of memory)";
  EXPECT_EQ(row_of(End::kWhenMade, 0).failure, "ended its process with code 7 while it was being made");
  EXPECT_EQ(row_of(End::kWhenMade, SIGKILL).failure, killed + " while it was being made");
  EXPECT_EQ(row_of(End::kWhenMade, SIGTERM).failure, "crashed: Terminated while it was being made");
  EXPECT_FALSE(row_of(End::kWhenMade, 0).failed_event);
  EXPECT_EQ(row_of(End::kAtThirdEvent, 0).failure, "ended its process with code 7");
  EXPECT_EQ(row_of(End::kAtThirdEvent, SIGKILL).failure, killed);
  EXPECT_EQ(row_of(End::kAtThirdEvent, SIGKILL).failed_event, 2U);
  EXPECT_EQ(row_of(End::kInTimedPass, 0).failure, "ended its process with code 7 in a timed pass");
  EXPECT_FALSE(row_of(End::kInTimedPass, 0).failed_event);
  const ReplayRow row = row_of(End::kAtThirdEvent, 0);
  EXPECT_EQ(row.label, "label");
  EXPECT_EQ(row.allocator, "ending");
  EXPECT_EQ(row.trace, trace.name);
  EXPECT_EQ(row.capacity_bytes, 4096U);
  EXPECT_EQ(row.events, 4U);
}

TEST(JobEnds, OfThoseThatAreGivenUpAreRowsWithoutFigures) {
  const Trace trace = read_one(kFourEvents);
  const StackConfig policy = plain_policy();
  JobOptions options{.timed_passes = 0, .time_each_call = false};
  options.capacity_bytes = 8192;
  std::vector<Job> jobs;
  for (const char* label : {"one", "two", "three", "four"}) jobs.push_back({&trace, &policy, label, options});
  for (const std::size_t stop_after : {0U, 1U, 3U, 4U}) {
    std::size_t done = 0;
    std::vector<std::pair<std::size_t, std::size_t>> told;
    const std::vector<ReplayRow> rows = run_jobs(
        jobs, 1,
        [&](std::size_t now, std::size_t all) {
          done = now;
          told.emplace_back(now, all);
        },
        [&] { return done >= stop_after; });
    ASSERT_EQ(rows.size(), 4U);
    ASSERT_EQ(told.size(), stop_after);
    for (std::size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i], std::pair(i + 1, std::size_t{4}));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].failure, i < stop_after ? "" : kNotMeasured) << i << " of " << stop_after;
      EXPECT_EQ(rows[i].label, jobs[i].label);
      EXPECT_EQ(rows[i].allocator, "plain");
      EXPECT_EQ(rows[i].capacity_bytes, 8192U);
      EXPECT_EQ(rows[i].peak_reserved_bytes, i < stop_after ? 1024U : 0U);
    }
  }
  EXPECT_TRUE(run_jobs({}, 1).empty());
}

TEST(JobEnds, RowsWithoutFiguresHaveTheOptionsThatWereSetAndNoOthers) {
  load_all_plugins();
  StackConfig policy = allocator_from_spec("caching:max_split_size=64MiB");
  const std::vector<std::pair<std::string, std::string>> set = {{"max_split_size", "64MiB"}};
  const Trace trace = read_one(kFourEvents);
  EXPECT_EQ(run_jobs({{&trace, &policy, "label", {}}}, 1, {}, [] { return true; }).front().options, set);
  policy.policy.create = [](const AllocatorContext&) -> std::unique_ptr<Allocator> { ::_exit(7); };
  EXPECT_EQ(run_jobs({{&trace, &policy, "label", {}}}, 1).front().options, set);
}

/// What children and this process see alike.
struct Shared {
  std::atomic<int> now{0}, most{0};
};

TEST(JobsAtATime, AreAsManyAsAreAskedFor) {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const shared = new (memory) Shared;
  const StackConfig policy = policy_of("counted", [shared](const AllocatorContext& context) {
    class Counted final : public PlainPolicy {
     public:
      Counted(MemorySource& source, Shared* shared) : PlainPolicy(source), shared_(shared) {
        const int now = ++shared_->now;
        int most = shared_->most;
        while (most < now && !shared_->most.compare_exchange_weak(most, now)) {
        }
        // Each waits until as many as may are there: then no more come.
        while (shared_->now < 2 && shared_->most < 2) ::usleep(1000);
      }
      ~Counted() override { --shared_->now; }

     private:
      Shared* shared_;
    };
    return std::make_unique<Counted>(context.source, shared);
  });
  const Trace trace = read_one(kFourEvents);
  const JobOptions options{.timed_passes = 0, .time_each_call = false, .check_placement = false};
  const std::vector<Job> jobs(6, Job{&trace, &policy, "job", options});
  for (const ReplayRow& row : run_jobs(jobs, 2, {}, {}, 60)) EXPECT_EQ(row.failure, "");
  EXPECT_EQ(shared->most, 2);
  EXPECT_EQ(shared->now, 0);
  ::munmap(memory, sizeof(Shared));
  EXPECT_GE(usable_cores(), 1U);
}

}  // namespace
}  // namespace tenon::replay
