// Replays in processes of their own: how each way to end is called, what is left of those that are given up, and how
// many run at a time.
#include "replay/support.h"

#include <tenon/replay/jobs/process_pool.h>
#include <tenon/replay/trace/long_work.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>

#include <support/has_sanitizer.h>

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
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

/// Runs `at_512` in place of the request for 512 bytes, in the process of the job.
StackConfig policy_that_does(std::function<void()> at_512) {
  return policy_of("doing", [at_512 = std::move(at_512)](const AllocatorContext& context) {
    class Doing final : public PlainPolicy {
     public:
      Doing(MemorySource& source, std::function<void()> at_512) : PlainPolicy(source), at_512_(std::move(at_512)) {}
      Block allocate(const Request& request) override {
        if (request.bytes == 512) at_512_();
        return PlainPolicy::allocate(request);
      }

     private:
      std::function<void()> at_512_;
    };
    return std::make_unique<Doing>(context.source, at_512);
  });
}

ReplayRow row_of_what_does(std::function<void()> at_512, double deadline_seconds = 60) {
  const Trace trace = read_one(kFourEvents);
  const StackConfig policy = policy_that_does(std::move(at_512));
  const JobOptions options{.timed_passes = 0, .time_each_call = false};
  return run_jobs({{&trace, &policy, "label", options}}, 1, {}, {}, deadline_seconds).front();
}

void fail(const char* words) { throw Error(words); }

/// So deep that its stack is full.
[[gnu::noinline]] int deep(volatile int* from) {
  volatile int here[64] = {};
  if (*from < 0) return 0;
  here[0] = *from + 1;
  return deep(here) + here[0];
}

TEST(JobEnds, OfOneThatCrashesAreCalledByWhatItSaidAndHaveItsStack) {
  if (test::has_a_sanitizer()) GTEST_SKIP() << "signals are left to the sanitizer";
  const ReplayRow said = row_of_what_does([]() noexcept { fail("nobody takes this"); });
  EXPECT_EQ(said.failure, "crashed: Aborted, an exception left a function that may not throw: nobody takes this");
  EXPECT_EQ(said.failed_event, 2U);
  EXPECT_FALSE(said.crash_stack.empty());
  const ReplayRow plain = row_of_what_does([] { std::raise(SIGSEGV); });
  EXPECT_EQ(plain.failure, "crashed: Segmentation fault");
  EXPECT_FALSE(plain.crash_stack.empty());
  const ReplayRow recursive = row_of_what_does([] {
    volatile int zero = 0;
    deep(&zero);
  });
  EXPECT_EQ(recursive.failure, "crashed: Segmentation fault, the stack is full: endless recursion?");
  EXPECT_TRUE(row_of_what_does([] { std::raise(SIGKILL); }).crash_stack.empty()) << "which nobody is told of";
}

TEST(JobEnds, WithoutARowAreFailuresHoweverTheProcessEnded) {
  const ReplayRow row = row_of_what_does([] { ::_exit(0); });
  EXPECT_EQ(row.failure, "ended its process with code 0");
  EXPECT_EQ(row.failed_event, 2U);
}

TEST(JobDeadlines, EndOneThatTakesLongerAndSayWhereItStood) {
  const ReplayRow row = row_of_what_does([] { ::pause(); }, 1);
  EXPECT_EQ(row.failure, "did not end within 1 s");
  EXPECT_EQ(row.failed_event, 2U);
  EXPECT_EQ(row.crash_stack.empty(), test::has_a_sanitizer())
      << "it is asked first; sanitizers have signals themselves";
}

TEST(JobDeadlines, EndOneThatDoesNotListenAndNotThoseBesideIt) {
  const Trace trace = read_one(kFourEvents);
  const StackConfig deaf = policy_that_does([] {
    std::signal(SIGABRT, SIG_IGN);
    for (;;) ::pause();
  });
  const StackConfig plain = plain_policy();
  const JobOptions options{.timed_passes = 0, .time_each_call = false};
  const std::vector<ReplayRow> rows =
      run_jobs({{&trace, &deaf, "deaf", options}, {&trace, &plain, "plain", options}}, 2, {}, {}, 1);
  EXPECT_EQ(rows[0].failure, "did not end within 1 s") << "and nothing of memory that ran out";
  EXPECT_EQ(rows[1].failure, "");
}

std::size_t count_of_open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}
/// Of memory that is shared with children.
std::size_t count_of_shared_ranges() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(" rw-s ") != std::string::npos ? 1 : 0;
  return count;
}

TEST(JobEnds, LeaveNoProcessNoFileAndNoMemoryBehind) {
  const Trace trace = read_one(kFourEvents);
  const StackConfig waiting = policy_that_does([] { ::pause(); });
  const StackConfig plain = plain_policy();
  const std::size_t files = count_of_open_files(), ranges = count_of_shared_ranges();
  int asked = 0;
  const std::vector<ReplayRow> rows =
      run_jobs({{&trace, &waiting, "one", {}}, {&trace, &waiting, "two", {}}, {&trace, &plain, "three", {}}}, 2, {},
               [&] { return ++asked == 2; });
  for (const ReplayRow& row : rows) EXPECT_EQ(row.failure, kNotMeasured);
  EXPECT_EQ(rows[1].label, "two");
  run_jobs({{&trace, &plain, "plain", {.timed_passes = 0}}});
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
  EXPECT_EQ(count_of_open_files(), files);
  EXPECT_EQ(count_of_shared_ranges(), ranges);
}

TEST(JobsProgress, IsTheShareOfTheEventsOfAllWhoseObservedPassIsMostOfIt) {
  const Trace four = read_one("a 0 100 0\nf 0\na 1 512 0\nf 1\n");           // a pass counts as 5
  const Trace six = read_one("a 0 1 0\nf 0\na 1 1 0\nf 1\na 2 1 0\nf 2\n");  // 7
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const may_go_on = new (memory) std::atomic<bool>(false);
  // Each pass over the history asks for 512 bytes once, and waits there until the share was seen.
  const auto shares_of = [&](bool keeps_layout, int which_pass, int timed_passes, double awaited) {
    *may_go_on = false;
    const auto passes = std::make_shared<int>(0);  // in a child's memory: each begins with none
    const StackConfig policy = policy_that_does([=] {
      if (++*passes != which_pass) return;
      for (int i = 0; i < 3000 && !*may_go_on; ++i) ::usleep(1000);
    });
    bool was_seen = false;
    listen_to_work([&](std::string_view what, double share) {
      EXPECT_EQ(what, "replaying");
      if (std::abs(share - awaited) < 1e-9) was_seen = *may_go_on = true;
    });
    const StackConfig plain = plain_policy();
    const JobOptions options{
        .timed_passes = timed_passes, .time_each_call = false, .keep_layout = keeps_layout, .check_placement = false};
    const JobOptions other{.timed_passes = 0, .time_each_call = false, .check_placement = false};
    const std::vector<ReplayRow> rows =
        run_jobs({{&four, &policy, "waits", options}, {&six, &plain, "plain", other}}, 1);
    listen_to_work({});
    for (const ReplayRow& row : rows) EXPECT_EQ(row.failure, "");
    return was_seen;
  };
  EXPECT_TRUE(shares_of(false, 1, 0, 2.0 / 12)) << "at the third event of the first job";
  EXPECT_TRUE(shares_of(true, 1, 0, 2.0 / 17)) << "which goes through its history twice";
  EXPECT_TRUE(shares_of(true, 2, 0, (5 + 2.0) / 17)) << "in the second of them";
  EXPECT_TRUE(shares_of(false, 2, 1, 5.0 / 12)) << "a timed pass: its own share is done";
  ::munmap(memory, 4096);
}

TEST(JobsAtATime, AreAsManyAsTheCoresThatThisProcessMayUseUnlessItIsSaid) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(usable_cores(), static_cast<unsigned>(CPU_COUNT(&before)));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1U);
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const shared = new (memory) Shared;
  const StackConfig policy = policy_that_does([shared] {
    if (++shared->now > shared->most) shared->most.store(shared->now);
    ::usleep(5000);
    --shared->now;
  });
  const Trace trace = read_one(kFourEvents);
  const JobOptions options{.timed_passes = 0, .time_each_call = false, .check_placement = false};
  run_jobs(std::vector<Job>(3, Job{&trace, &policy, "job", options}), 0);
  EXPECT_EQ(shared->most, 1);
  ::munmap(memory, sizeof(Shared));
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace tenon::replay
