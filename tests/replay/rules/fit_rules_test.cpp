// What is said of allocators that would have served a history, word for word, and which of them: over reports that are
// made by hand, and over policies whose calls to the device are counted.
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/capacity_curve.h>
#include <tenon/replay/advise/capacity_walk.h>
#include <tenon/replay/advise/own_allocators.h>
#include <tenon/replay/advise/would_fit.h>
#include <tenon/replay/trace/trace_builder.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FitAttempt attempt(const std::string& label, std::uint64_t ooms, std::uint64_t peak = 0) {
  FitAttempt made;
  made.label = label;
  made.ooms = ooms;
  made.peak_reserved_bytes = peak;
  return made;
}

/// On 10 MiB, with 8 MiB live at once; what is in use ran out.
FitReport report_of(std::vector<FitAttempt> others) {
  FitReport report{.capacity_bytes = 10 * MiB, .events = 7, .peak_requested_bytes = 8 * MiB};
  report.current = attempt("mine", 2, 9 * MiB);
  report.others = std::move(others);
  return report;
}

TEST(FitSentences, NameUpToThreeThatFitAndCountTheOthers) {
  std::vector<FitAttempt> fitting;
  EXPECT_EQ(report_of({}).sentence(), "no other allocator is loaded, so none was tried");
  const std::vector<std::string> sentences = {"'a0' (1.00 MiB reserved) would have fitted",
                                              "'a0' (1.00 MiB reserved), 'a1' (2.00 MiB reserved) would have fitted",
                                              "'a0' (1.00 MiB reserved), 'a1' (2.00 MiB reserved), 'a2' (3.00 MiB "
                                              "reserved) would have fitted",
                                              "'a0' (1.00 MiB reserved), 'a1' (2.00 MiB reserved), 'a2' (3.00 MiB "
                                              "reserved) and 1 more would have fitted",
                                              "'a0' (1.00 MiB reserved), 'a1' (2.00 MiB reserved), 'a2' (3.00 MiB "
                                              "reserved) and 2 more would have fitted"};
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    fitting.push_back(attempt(fmt::format("a{}", i), 0, (i + 1) * MiB));
    std::vector<FitAttempt> others = fitting;
    others.push_back(attempt("fails", 1));
    EXPECT_EQ(report_of(others).sentence(), "in a replay of all 7 events on 10.0 MiB, " + sentences[i]);
  }
  FitAttempt slow = attempt("slow", 0, 3 * MiB);
  slow.is_slow = true;
  slow.device_calls = 55;
  FitReport report = report_of({slow});
  report.lost_events = 1;
  EXPECT_EQ(
      report.sentence(),
      "in a replay of the last 7 events on 10.0 MiB, 'slow' (3.00 MiB reserved, 55 device calls) would have fitted");
}

TEST(FitSentences, SayThatNoneWouldHaveFittedOrThatNothingIsProved) {
  FitAttempt broken = attempt("broken", 0);
  broken.failure = "it broke";
  EXPECT_EQ(
      report_of({attempt("a", 1), broken}).sentence(),
      "in a replay of all 7 events on 10.0 MiB, none of 'a', 'broken' would have fitted: 8.00 MiB were live at once");
  FitReport report = report_of({attempt("a", 0)});
  report.current = attempt("mine", 0, 9 * MiB);
  EXPECT_EQ(
      report.sentence(),
      "in a replay of all 7 events on 10.0 MiB, 'mine' itself does not run out (9.00 MiB reserved): the cause lies "
      "outside the replay, such as another process, a layer or events before the recording");
  report.current = broken;
  EXPECT_EQ(report.sentence(), "'broken' is disqualified: it broke");
  report.current.failed_event = 0;
  EXPECT_EQ(report.sentence(), "'broken' is disqualified: it broke at event 0");
  EXPECT_EQ(attempt("a", 3).complaint(), "");
}

TEST(FitSentences, SayThatLiveBytesAloneAreTooMuchExactlyWhereRoundedOnesLookTheSame) {
  FitReport report = report_of({attempt("a", 0)});
  report.peak_requested_bytes = 10 * MiB;
  EXPECT_THAT(report.sentence(), HasSubstr("would have fitted")) << "just as much";
  report.peak_requested_bytes = 10 * MiB + 1;
  EXPECT_EQ(report.sentence(),
            "no allocator could have served it: 10485761 bytes were live or asked for at once, on a device of 10485760 "
            "bytes");
  report.peak_requested_bytes = 12 * MiB;
  EXPECT_EQ(report.sentence(),
            "no allocator could have served it: 12.0 MiB were live or asked for at once, on a device of 10.0 MiB");
  report.capacity_bytes = 0;
  EXPECT_THAT(report.sentence(), HasSubstr("would have fitted")) << "without a limit";
}

TEST(FitReports, RecommendTheFirstThatFitsAndKnowWhatTakesLeast) {
  for (const std::uint64_t current_ooms : {0, 1})
    for (const std::uint64_t first_ooms : {0, 1})
      for (const std::uint64_t second_ooms : {0, 1})
        for (const bool breaks : {false, true}) {
          FitReport report = report_of({attempt("first", first_ooms, 5), attempt("second", second_ooms, 4)});
          report.current = attempt("mine", current_ooms, 4);
          if (breaks) report.others[1].failure = "it broke";
          EXPECT_EQ(report.is_reproduced(), current_ooms != 0);
          EXPECT_EQ(report.best(), current_ooms != 0 && first_ooms == 0 ? &report.others[0] : nullptr);
          const FitAttempt* const least = current_ooms == 0             ? &report.current
                                          : second_ooms == 0 && !breaks ? &report.others[1]
                                          : first_ooms == 0             ? &report.others[0]
                                                                        : nullptr;
          EXPECT_EQ(report.least(), least);
          report.current.failure = "it broke";
          EXPECT_FALSE(report.is_reproduced());
          EXPECT_EQ(report.best(), nullptr);
        }
}

/// Serves everything from one piece, having taken `acquires` pieces and given `releases` of them back at first.
StackConfig calling_policy(int acquires, int releases) {
  return policy_of("calling", [=](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    class Calling final : public Allocator {
     public:
      Calling(MemorySource& source, int acquires, int releases) : source_(source) {
        for (int i = 0; i < acquires; ++i) pieces_.push_back(source_.acquire(MiB));
        for (int i = 0; i < releases; ++i) give_back();
      }
      ~Calling() override {
        while (!pieces_.empty()) give_back();
      }
      Block allocate(const Request& request) override {
        return {
            .data = static_cast<char*>(pieces_.front()) + 1024 * next_++, .bytes = request.bytes, .request = request};
      }
      void deallocate(const Block&, StreamRef) noexcept override {}

     private:
      void give_back() {
        source_.release(pieces_.back(), MiB);
        pieces_.pop_back();
      }
      MemorySource& source_;
      std::vector<void*> pieces_;
      std::size_t next_ = 0;
    };
    return std::make_unique<Calling>(context.source, acquires, releases);
  });
}

TEST(SlowOnes, HaveMoreCallsThanRequestsAndGiveBackMoreOftenThanEverySecondFree) {
  constexpr int kRequests = 20, kFrees = 12;
  std::string text;
  for (int i = 0; i < kRequests; ++i) text += fmt::format("a {} 1000 0\n", i);
  for (int i = 0; i < kFrees; ++i) text += fmt::format("f {}\n", i);
  const Trace trace = read_one(text);
  for (const auto& [acquires, releases] : std::vector<std::pair<int, int>>{
           {13, 7}, {14, 7}, {14, 6}, {20, 6}, {30, 6}, {20, 7}, {12, 9}, {11, 10}, {1, 0}}) {
    const FitReport report =
        what_would_fit(trace, {"plain", plain_policy()}, {{"calling", calling_policy(acquires, releases)}}, 0);
    ASSERT_EQ(report.others.size(), 1U);
    EXPECT_EQ(report.others[0].failure, "");
    EXPECT_EQ(report.others[0].device_calls, static_cast<std::uint64_t>(acquires + releases));
    EXPECT_EQ(report.others[0].is_slow, acquires + releases > kRequests && 2 * releases > kFrees)
        << acquires << " and " << releases;
    const FitReport planned =
        what_would_fit(trace, {"plain", plain_policy()}, {{"calling", calling_policy(acquires, releases), true}}, 0);
    EXPECT_FALSE(planned.others[0].is_slow);
  }
}

TEST(SlowOnes, HaveAThousandCallsMoreThanAQuarterOfTheRequests) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("a {} 1000 0\n", i);
  const Trace trace = read_one(text);
  for (const int calls : {1009, 1010, 1011}) {
    const FitReport report =
        what_would_fit(trace, {"plain", plain_policy()}, {{"calling", calling_policy(calls, 0)}}, 0);
    EXPECT_EQ(report.others[0].is_slow, calls > 1010) << calls;
  }
}

TEST(FitAttempts, AreMadeOnceForEachCandidate) {
  auto* const made = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));  // replays are children
  ASSERT_NE(made, MAP_FAILED);
  const StackConfig counted = policy_of("counted", [made](const AllocatorContext& context) {
    ++*made;
    return std::make_unique<PlainPolicy>(context.source);
  });
  what_would_fit(read_one("a 0 1000 0\nf 0\n"), {"keeping", keeping_policy()}, {{"counted", counted}}, 0);
  EXPECT_EQ(*made, 1);
  ::munmap(made, 4096);
}

TEST(FitAttempts, OfEqualPeaksQuickOnesAreFirstAndThoseThatRanOutBeforeThoseThatBroke) {
  const StackConfig broken = policy_of("broken", [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    class Broken final : public PlainPolicy {
     public:
      using PlainPolicy::PlainPolicy;
      Block allocate(const Request&) override { throw Error("lost its way"); }
    };
    return std::make_unique<Broken>(context.source);
  });
  std::string text;
  for (int i = 0; i < 12; ++i) text += fmt::format("a {0} {1} 0\nf {0}\n", i, 1000 + i % 2);
  StackConfig keeping = keeping_policy();
  keeping.policy.name = "keeping, too";
  const FitReport report = what_would_fit(read_one(text), {"keeping", keeping_policy()},
                                          {{"broken", broken}, {"runs out", keeping}, {"slow", plain_policy()}}, 1800,
                                          {.own = {{"own", calling_policy(1, 0)}}});
  std::vector<std::string> order;
  for (const FitAttempt& one : report.others) order.push_back(one.label);
  EXPECT_THAT(order, ElementsAre("slow", "runs out", "broken"));
  ASSERT_EQ(report.own.size(), 1U);
  EXPECT_EQ(report.own[0].label, "own");
}

TEST(OwnAllocators, AreTheDefaultOnesThatAreNotPytorchsAndThenWhatIsNamed) {
  load_all_plugins();
  std::vector<std::string> expected, found;
  for (const std::string& name : default_allocators())
    if (!allocator_from_spec(name).policy.traits.pytorch_conf) expected.push_back(name);
  EXPECT_FALSE(expected.empty());
  EXPECT_LT(expected.size(), default_allocators().size());
  for (const std::string extra : {"direct", "caching:max_split_size=64MiB"}) expected.push_back(extra);
  for (const FitCandidate& candidate : own_allocators({"direct", "caching:max_split_size=64MiB"})) {
    found.push_back(candidate.label);
    EXPECT_EQ(candidate.policy.options.entries(true), allocator_from_spec(candidate.label).options.entries(true));
    EXPECT_FALSE(candidate.is_planned);
  }
  EXPECT_EQ(found, expected);
  EXPECT_THROW(own_allocators({"no such one"}), ConfigError);
}

TEST(OtherAllocators, AreAllThatAreLoadedAndEachSettingOnTopOfTheBase) {
  load_all_plugins();
  const std::vector<FitCandidate> others = other_allocators(allocator_from_spec("direct"), 4 * GiB);
  std::vector<std::string> plain;
  std::size_t settings = 0;
  for (const FitCandidate& candidate : others) {
    const std::string spec = candidate.label.substr(0, candidate.label.find(" with its defaults"));
    EXPECT_EQ(candidate.policy.options.entries(true), allocator_from_spec(spec).options.entries(true)) << spec;
    if (candidate.label.find(':') == std::string::npos) {
      plain.push_back(spec);
    } else {
      ++settings;
      EXPECT_EQ(candidate.policy.options.entries(true).size(), 1U) << spec;
    }
  }
  EXPECT_EQ(plain, default_allocators());
  EXPECT_GE(settings, 2U);
}

TEST(PlanOfHistory, IsMadeOfUpToTwoHundredThousandAllocations) {
  load_all_plugins();
  for (const std::uint64_t count : {PlanOfHistory::kMostAllocations, PlanOfHistory::kMostAllocations + 1}) {
    TraceBuilder builder("long");
    for (std::uint64_t i = 0; i < count; ++i) builder.free(builder.allocate(1000, 0));
    bool was_asked = false;
    const PlanOfHistory plan(std::move(builder).finish(), 1, [&] { return was_asked = true; });
    EXPECT_EQ(was_asked, count <= PlanOfHistory::kMostAllocations) << "whether to stop, before a plan is made";
    EXPECT_TRUE(plan.allocators().empty());
  }
}

TEST(CapacitiesAtFailure, AreTheLargestThatIsToldHoweverSmall) {
  Trace trace = read_one("a 0 1000 0\nf 0\n");
  trace.ooms.push_back({{.bytes = 5000, .device_free_bytes = 1}, 3});
  EXPECT_EQ(capacity_at_failure(trace), 1U);
  trace.ooms.push_back({{.bytes = 5000, .reserved_bytes = 900}, 4});
  trace.ooms.push_back({{.bytes = 5000, .reserved_bytes = 600, .device_free_bytes = 50}, 5});
  EXPECT_EQ(capacity_at_failure(trace), 900U);
}

/// Fails below a capacity, and takes what it is asked for.
StackConfig policy_that_needs(std::uint64_t bytes) {
  return policy_of("needing", [bytes](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    class Needing final : public PlainPolicy {
     public:
      Needing(MemorySource& source, std::uint64_t bytes) : PlainPolicy(source), bytes_(bytes) {}
      Block allocate(const Request& request) override {
        void* const all = source_.acquire(bytes_);
        if (all == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
        source_.release(all, bytes_);
        return PlainPolicy::allocate(request);
      }

     private:
      std::uint64_t bytes_;
    };
    return std::make_unique<Needing>(context.source, bytes);
  });
}

TEST(CapacityCurves, EndWithinAGranuleOfTheSmallestSafeCapacity) {
  const std::vector<Trace> traces{read_one("a 0 3000 0\nf 0\n")};
  for (std::uint64_t needed = 2900; needed < 7000; needed += 331) {
    const StackConfig policy = policy_that_needs(needed);
    for (const std::uint64_t peak : {std::uint64_t{3000}, needed}) {
      const CapacityCurve curve = capacity_curve(traces, policy, {.peak_reserved_bytes = peak, .jobs = 1});
      EXPECT_EQ(curve.failure, "");
      const std::uint64_t threshold = align_up(std::max<std::uint64_t>(3000, needed), 512);  // in its granules
      ASSERT_TRUE(curve.safe_from_bytes) << needed;
      EXPECT_GE(*curve.safe_from_bytes, threshold);
      std::uint64_t largest_that_failed = 0;
      for (const CapacityPoint& point : curve.points) {
        EXPECT_EQ(point.ooms, point.capacity_bytes < threshold ? 1U : 0U) << point.capacity_bytes;
        if (point.ooms != 0) largest_that_failed = std::max(largest_that_failed, point.capacity_bytes);
      }
      if (largest_that_failed != 0) {
        EXPECT_LT(*curve.safe_from_bytes - largest_that_failed, 2 * 512U);
      }
    }
  }
}

TEST(CapacityCurves, EndAtAGranuleWhereTwoThatWereTriedAreAByteMoreApart) {
  const std::vector<Trace> traces{read_one("a 0 2048 0\nf 0\n")};
  // A step is a three-hundredth of what lies between the live peak and the peak: 513 bytes.
  const CapacityCurve curve =
      capacity_curve(traces, policy_that_needs(2348), {.peak_reserved_bytes = 2048 + 300 * 513, .jobs = 1});
  EXPECT_EQ(curve.safe_from_bytes, 2560U);
  EXPECT_EQ(curve.points.front().capacity_bytes, 2048U);
}

TEST(CapacityCurves, AreReplayedOnceAtEachPoint) {
  auto* const made = static_cast<std::atomic<std::size_t>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));  // replays are children
  ASSERT_NE(made, MAP_FAILED);
  const StackConfig counted = policy_of("counted", [made](const AllocatorContext& context) {
    ++*made;
    return std::make_unique<PlainPolicy>(context.source);
  });
  std::vector<Trace> traces;
  for (int i = 0; i < 2; ++i) traces.push_back(read_one("a 0 3000 0\nf 0\n"));
  const CapacityCurve curve = capacity_curve(traces, counted, {.peak_reserved_bytes = 5000});
  EXPECT_EQ(*made, 2 * curve.points.size());
  *made = 0;
  const std::vector<ReplayRow> rows(2);
  CapacityWalk walk(traces, rows);
  for (const Job& job : walk.next(counted)) {
    EXPECT_EQ(job.policy, &counted);
    run_job(*job.trace, counted, job.options);
  }
  EXPECT_EQ(*made, 0U) << "below the live bytes nothing is tried";
  const std::vector<ReplayRow> high = {{.same_from_bytes = 8000}, {.same_from_bytes = 9000}};
  walk = CapacityWalk(traces, high);
  const std::vector<Job> next = walk.next(counted);
  ASSERT_EQ(next.size(), 1U) << "the one that would change first";
  EXPECT_EQ(next[0].trace, &traces[1]);
  EXPECT_EQ(next[0].options.capacity_bytes, 8999U);
  run_job(*next[0].trace, counted, next[0].options);
  EXPECT_EQ(*made, 1U) << "without timed passes";
  ::munmap(made, 4096);
}

TEST(CapacityCurves, CountAFailureOnceWhereTwoStepsAreRoundedUpToOneCapacity) {
  const std::vector<Trace> traces{read_one("a 0 1048576 0\nf 0\n")};
  const CapacityCurve curve =
      capacity_curve(traces, policy_that_needs(140 * MiB), {.peak_reserved_bytes = 130 * MiB, .is_coarse = true});
  EXPECT_EQ(curve.safe_from_bytes, 145 * MiB);
  for (const CapacityPoint& point : curve.points) EXPECT_LE(point.ooms, 1U) << point.capacity_bytes;
}

TEST(CapacityCurves, GoOnBeyondThePeakInFourStretchesOfEightPoints) {
  const std::vector<Trace> traces{read_one("a 0 3000 0\nf 0\n")};
  const auto top_of = [&](std::uint64_t needed, std::optional<std::uint64_t> target) {
    const CapacityCurve curve = capacity_curve(
        traces, policy_that_needs(needed), {.peak_reserved_bytes = 3000, .target_bytes = target, .is_coarse = true});
    EXPECT_EQ(curve.safe_from_bytes.has_value(), curve.points.back().ooms == 0);
    return std::pair(curve.points.back().capacity_bytes, curve.points.size());
  };
  const auto beyond = [](int point) { return typable_capacity(3000 + 512 + (std::uint64_t{512} << point)); };
  EXPECT_EQ(top_of(3000, {}).first, 3512U);
  EXPECT_EQ(top_of(3513, {}).first, beyond(7)) << "the whole first stretch";
  EXPECT_EQ(top_of(beyond(7) / 512 * 512, {}).first, beyond(7));
  EXPECT_EQ(top_of(beyond(7) + 1, {}).first, beyond(15));
  EXPECT_EQ(top_of(beyond(23) + 1, {}).first, beyond(31));
  EXPECT_EQ(top_of(beyond(31) + 1, {}).first, beyond(31)) << "and no further";
  EXPECT_EQ(top_of(3513, {GiB}).first, GiB);
  EXPECT_EQ(top_of(3513, {GiB}).second, top_of(3513, {}).second + 1) << "the target stands by itself";
}

}  // namespace
}  // namespace tenon::replay
