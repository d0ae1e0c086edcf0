// Which allocators would have served a history that ran out of memory.
#include "cli/pinned_segments.h"
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/own_allocators.h>
#include <tenon/replay/advise/would_fit.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sys/resource.h>

#include <filesystem>
#include <iterator>

namespace tenon::replay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Blocks of rising size, each freed before the next: whoever keeps them needs the sum, whoever does not the largest.
Trace rising(std::uint64_t unit = 1) {
  std::string text;
  for (std::uint64_t i = 0; i < 4; ++i) text += fmt::format("a {0} {1} 0\nf {0}\n", i, (i + 1) * 100 * unit);
  return read_one(text);
}

TEST(WouldFit, NamesThePolicyThatServesWhatTheOtherCouldNot) {
  const FitReport report =
      what_would_fit(rising(KiB), {"keeping", keeping_policy()}, {{"plain", plain_policy()}}, 500 * KiB);
  EXPECT_TRUE(report.is_reproduced());
  EXPECT_EQ(report.current.first_oom_event, 4u);
  ASSERT_NE(report.best(), nullptr);
  EXPECT_EQ(report.best()->label, "plain");
  EXPECT_EQ(report.best()->peak_reserved_bytes, 400 * KiB);
  EXPECT_EQ(report.sentence(),
            "in a replay of all 8 events on 500.0 KiB, 'plain' (400.0 KiB reserved, 8 device calls) would have fitted");
}

TEST(WouldFit, ClaimsNothingWhereTheFailureDoesNotComeAgain) {
  const FitReport report =
      what_would_fit(rising(KiB), {"keeping", keeping_policy()}, {{"plain", plain_policy()}}, 1000 * KiB);
  EXPECT_FALSE(report.is_reproduced());
  EXPECT_EQ(report.best(), nullptr);
  EXPECT_THAT(report.sentence(), HasSubstr("'keeping' itself does not run out"));
}

TEST(WouldFit, TellsTenonsOwnApartFromWhatIsRecommended) {
  const FitReport report = what_would_fit(rising(KiB), {"keeping", keeping_policy()}, {}, 500 * KiB,
                                          {.own = {{"plain", plain_policy(), true}}});
  EXPECT_EQ(report.best(), nullptr);
  EXPECT_EQ(report.least(), nullptr);
  ASSERT_EQ(report.own.size(), 1u);
  EXPECT_TRUE(report.own.front().fits());
  EXPECT_TRUE(report.own.front().is_planned);
}

/// Takes more from the device than it is asked for.
StackConfig wide_policy(std::size_t more_bytes) {
  return policy_of("wide by " + std::to_string(more_bytes),
                   [more_bytes](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                     class Wide final : public PlainPolicy {
                      public:
                       Wide(MemorySource& source, std::size_t more) : PlainPolicy(source), more_(more) {}
                       Block allocate(const Request& request) override {
                         Request wider = request;
                         wider.bytes += more_;
                         Block block = PlainPolicy::allocate(wider);
                         block.request = request;
                         return block;
                       }

                      private:
                       std::size_t more_;
                     };
                     return std::make_unique<Wide>(context.source, more_bytes);
                   });
}

TEST(WouldFit, TheFirstIsWhatFitsAndNeedsLeastAndOfEqualOnesTheOneThatWasNamedFirst) {
  StackConfig other = plain_policy(), keeping = keeping_policy();
  other.policy.name = "other", keeping.policy.name = "keeping, too";  // of one name and options one is tried
  const FitReport report = what_would_fit(rising(KiB), {"keeping", keeping_policy()},
                                          {{"keeps, too", keeping},
                                           {"needs more", wide_policy(50 * KiB)},
                                           {"plain", plain_policy()},
                                           {"as plain", other},
                                           {"needs a little more", wide_policy(10 * KiB)}},
                                          500 * KiB);
  std::vector<std::string> order;
  for (const FitAttempt& attempt : report.others) order.push_back(attempt.label);
  EXPECT_THAT(order, ::testing::ElementsAre("plain", "as plain", "needs a little more", "needs more", "keeps, too"));
}

TEST(WouldFit, OfEqualPeaksWhatAsksTheDeviceAgainAndAgainComesLast) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += fmt::format("a {0} 1000 0\nf {0}\n", i);
  const FitReport report = what_would_fit(read_one(text), {"wide", wide_policy(50 * KiB)},
                                          {{"plain", plain_policy()}, {"keeping", keeping_policy()}}, 10 * KiB);
  ASSERT_EQ(report.others.size(), 2u);
  EXPECT_EQ(report.others[0].label, "keeping");
  EXPECT_FALSE(report.others[0].is_slow);
  EXPECT_EQ(report.others[1].label, "plain") << "as much memory, in 40 calls for 20 requests";
  EXPECT_TRUE(report.others[1].is_slow);
  EXPECT_EQ(report.others[0].peak_reserved_bytes, report.others[1].peak_reserved_bytes);
}

TEST(WouldFit, WhatTakesALongBlockInSeveralPiecesAndKeepsThemIsNotSlow) {
  load_all_plugins();
  std::string text;
  for (int i = 0; i < 20; ++i) text += fmt::format("a {} {} 0\n", i, 2 * GiB);
  text += fmt::format("f 3\na 20 {} 0\n", 2 * GiB);
  const FitReport report = what_would_fit(
      read_one(text), {"keeping", keeping_policy()},
      {{"mortise", allocator_from_spec("mortise")}, {"direct", allocator_from_spec("direct")}}, 48 * GiB);
  ASSERT_EQ(report.others.size(), 2u);
  EXPECT_EQ(report.others[0].label, "mortise");
  EXPECT_GT(report.others[0].device_calls, 21u) << "no block of this history needs several pieces";
  EXPECT_FALSE(report.others[0].is_slow);
  EXPECT_TRUE(report.others[1].is_slow) << "a call for each request, and one for each free";
}

TEST(PlanOfHistory, ServesEveryRequestOfTheHistoryAtItsPeak) {
  load_all_plugins();
  const Trace trace = read_one(test::pinned_segments(test::kSmallPinned));
  const PlanOfHistory plan(trace, 1);
  const std::vector<FitCandidate> planned = plan.allocators();
  ASSERT_EQ(planned.size(), 1u);
  EXPECT_EQ(planned.front().label, "planned");
  const ReplayRow row = run_job(trace, planned.front().policy, {.timed_passes = 0, .time_each_call = false});
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.ooms, 0u);
  EXPECT_LE(row.peak_reserved_bytes, trace.facts.peak_requested_bytes + 4 * MiB);
}

TEST(PlanOfHistory, IsNotMadeOfNothingNorOnceItIsToStop) {
  load_all_plugins();
  EXPECT_TRUE(PlanOfHistory(read_one("# nothing\n"), 1).allocators().empty());
  EXPECT_TRUE(PlanOfHistory(rising(KiB), 1, [] { return true; }).allocators().empty());
}

std::size_t open_files() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

TEST(PlanOfHistory, IsAnOpenFileAsLongAsItLives) {
  const std::size_t before = open_files();
  {
    const PlanOfHistory plan(rising(KiB), 1);
    EXPECT_EQ(open_files(), before + 1);
  }
  EXPECT_EQ(open_files(), before);
}

TEST(PlanOfHistory, ServesNobodyWhereTheProcessMayOpenNoFile) {
  load_all_plugins();
  const Trace trace = rising(KiB);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const PlanOfHistory plan(trace, 1);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_TRUE(plan.allocators().empty());
}

TEST(PlanOfHistory, IsCalledAfterItsHistory) {
  EXPECT_EQ(plan_name_for("traces/gpt2.trace.gz"), "gpt2.plan");
  EXPECT_EQ(plan_name_for("gpt2"), "gpt2.plan");
  EXPECT_EQ(plan_name_for("-"), "history.plan");
  EXPECT_EQ(plan_name_for("standard input"), "history.plan") << "as its trace is named";
  EXPECT_EQ(plan_name_for("runs/two.pickle", 1), "two-1.plan") << "one of several, each of which has its own plan";
}

TEST(WouldFit, SaysWhenTheLiveBytesAloneAreTooMuch) {
  const FitReport report =
      what_would_fit(rising(KiB), {"keeping", keeping_policy()}, {{"plain", plain_policy()}}, 300 * KiB);
  EXPECT_EQ(report.best(), nullptr);
  EXPECT_THAT(report.sentence(), HasSubstr("no allocator could have served it"));
}

TEST(WouldFit, LeavesOutWhatIsInUseAlready) {
  const FitReport report =
      what_would_fit(rising(KiB), {"keeping", keeping_policy()}, {{"the same", keeping_policy()}}, 500 * KiB);
  EXPECT_TRUE(report.others.empty());
  EXPECT_EQ(report.best(), nullptr);
}

TEST(WouldFit, APolicyThatBreaksInTheReplayIsNotRecommended) {
  const StackConfig broken = policy_of("broken", [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    class Broken final : public PlainPolicy {
     public:
      using PlainPolicy::PlainPolicy;
      Block allocate(const Request&) override { throw Error("lost its way"); }
    };
    return std::make_unique<Broken>(context.source);
  });
  const FitReport report = what_would_fit(rising(KiB), {"keeping", keeping_policy()}, {{"broken", broken}}, 500 * KiB);
  EXPECT_EQ(report.best(), nullptr);
  EXPECT_THAT(report.others.front().failure, HasSubstr("lost its way"));
}

TEST(WouldFit, APolicyThatHandsOutTheSameMemoryTwiceIsDisqualified) {
  const StackConfig sharing = policy_of("sharing", [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
    class Sharing final : public PlainPolicy {
     public:
      using PlainPolicy::PlainPolicy;
      Block allocate(const Request& request) override {
        if (last_.data == nullptr) last_ = PlainPolicy::allocate({.bytes = MiB});
        return {.data = last_.data, .bytes = request.bytes, .request = request};
      }
      void deallocate(const Block&, StreamRef) noexcept override {}

     private:
      Block last_;
    };
    return std::make_unique<Sharing>(context.source);
  });
  const FitReport report = what_would_fit(read_one("a 0 512 0\na 1 512 0\nf 0\nf 1\n"), {"sharing", sharing},
                                          {{"plain", plain_policy()}}, MiB);
  EXPECT_FALSE(report.current.fits());
  EXPECT_FALSE(report.is_reproduced()) << "that it ran out proves nothing";
  EXPECT_EQ(report.best(), nullptr);
  EXPECT_THAT(report.sentence(), AllOf(HasSubstr("'sharing' is disqualified"), HasSubstr("at event 1")));
}

TEST(WouldFit, NeverSuggestsASettingOfPytorchThatIsOn) {
  for (const FitCandidate& candidate : other_pytorch_settings("expandable_segments:True", 4 * GiB)) {
    EXPECT_THAT(candidate.label, HasSubstr("expandable_segments:True")) << "what was set stays set";
    EXPECT_NE(candidate.label, "expandable_segments:True");
    EXPECT_THAT(candidate.label, Not(HasSubstr("max_split_size_mb"))) << "it grows without bound with the other";
  }
  const auto settings = other_pytorch_settings("", 4 * GiB);
  EXPECT_EQ(settings.front().label, "expandable_segments:True");
  for (const FitCandidate& candidate : other_pytorch_settings("max_split_size_mb:64", 4 * GiB))
    EXPECT_EQ(candidate.label.find("max_split_size_mb"), candidate.label.rfind("max_split_size_mb"));
}

TEST(WouldFit, ReadsWhatIsOnAsPyTorchDoes) {
  for (const FitCandidate& candidate : other_pytorch_settings("expandable_segments: True", 4 * GiB)) {
    EXPECT_THAT(candidate.label, Not(HasSubstr("expandable_segments:True"))) << "it is on already";
    EXPECT_THAT(candidate.label, Not(HasSubstr("max_split_size_mb"))) << "it grows without bound with the other";
  }
  for (const FitCandidate& candidate : other_pytorch_settings("max_split_size_mb :64", 4 * GiB))
    EXPECT_EQ(candidate.label.find("max_split_size_mb"), candidate.label.rfind("max_split_size_mb"));
  EXPECT_EQ(other_pytorch_settings("expandable_segments_reserve:0.5", 4 * GiB).front().label,
            "expandable_segments_reserve:0.5,expandable_segments:True")
      << "another key";
}

TEST(WouldFit, SuggestsNothingThatTheDriverWouldRefuse) {
  for (const FitCandidate& candidate : other_pytorch_settings("large_segment_size_mb:33", 4 * GiB))
    EXPECT_THAT(candidate.label, Not(HasSubstr("expandable_segments"))) << "pages are of even mebibytes";
}

TEST(WouldFit, OfTheAllocatorInUseOnlyOtherSettingsAreSuggested) {
  load_all_plugins();
  const StackConfig current = allocator_from_spec("expandable");
  const FitReport report =
      what_would_fit(rising(), {"expandable", current}, other_allocators(current, 1 * GiB), 100 * MiB);
  for (const FitAttempt& other : report.others) EXPECT_THAT(other.label, Not(HasSubstr("expandable")));
}

TEST(WouldFit, TheCapacityIsTheLargestThatAFailureOfTheRecordingTells) {
  Trace trace = rising();
  EXPECT_EQ(capacity_at_failure(trace), std::nullopt);
  trace.ooms.push_back({{.bytes = 5000}, 3});  // of a file that does not tell
  EXPECT_EQ(capacity_at_failure(trace), std::nullopt);
  trace.ooms.push_back({{.bytes = 5000, .reserved_bytes = 600, .device_free_bytes = 400}, 3});
  EXPECT_EQ(capacity_at_failure(trace), 1000u);
}

}  // namespace
}  // namespace tenon::replay
