// A run of the kit: its limits, what it tells meanwhile, which failure comes of which, and where it ends early.
#include "conformance/allocators/parts/keeper.h"

#include <tenon/conformance/speed.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <gmock/gmock.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tenon::conformance {
namespace {

using test::Habits;
using test::keeper;
using testing::HasSubstr;
using testing::StartsWith;

/// Numbers that children of this process share.
class Shared {
 public:
  struct Numbers {
    std::atomic<int> made{0}, asked{0};
    std::atomic<bool> is_told{false};
  };
  Shared()
      : numbers_(new (::mmap(nullptr, sizeof(Numbers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                     Numbers) {}
  ~Shared() { ::munmap(numbers_, sizeof *numbers_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  Numbers* operator->() const { return numbers_; }

 private:
  Numbers* numbers_;
};

/// All checks but these.
std::vector<std::string> all_but(const std::vector<std::string>& these) {
  std::vector<std::string> names = check_names();
  std::erase_if(names, [&](const std::string& name) { return std::ranges::find(these, name) != these.end(); });
  return names;
}

TEST(KitRuns, AFailureThatMayComeOfAnEarlierOneIsToldBehindItInALine) {
  const Habits shifts{.handed_out = [](Block& block) { block.data = static_cast<char*>(block.data) + 32; },
                      .shows_layout = true};
  const Report report = run(keeper(shifts), nullptr,
                            {.histories = 1,
                             .history_length = 30,
                             .skip = all_but({"serves_every_size", "aligns", "trims", "shows_its_layout"}),
                             .is_isolated = false});
  ASSERT_EQ(report.checks.size(), 4U);
  EXPECT_EQ(report.checks[0].state(), "passed");
  EXPECT_EQ(report.checks[1].name, "aligns");
  EXPECT_EQ(report.checks[1].state(), "FAILED");
  EXPECT_EQ(report.checks[2].state(), "passed");
  EXPECT_EQ(report.checks[3].name, "shows_its_layout");
  EXPECT_EQ(report.checks[3].state(), "after");
  EXPECT_EQ(report.checks[3].may_come_of, "aligns");
  EXPECT_THAT(report.checks[3].failure, StartsWith("walk does not show block #"));
  EXPECT_EQ(report.checks[3].failure.find('\n'), std::string::npos) << "its history is not looked for";
  EXPECT_EQ(report.summary(), "2 passed, 1 failed, 1 that may come of that\n");
}

TEST(KitRuns, ASecondFailureOfACauseIsToldInItsFirstLine) {
  const Habits throws{.asked = [](const Request&) { throw std::runtime_error("no\nsecond line"); }};
  const Report report = run(keeper(throws), nullptr, {.skip = all_but({"aligns", "trims"}), .is_isolated = false});
  ASSERT_EQ(report.checks.size(), 2U);
  EXPECT_THAT(report.checks[0].failure, StartsWith("allocate threw std::runtime_error (\"no\nsecond line\"); an "));
  EXPECT_EQ(report.checks[1].same_as, "aligns");
  EXPECT_EQ(report.checks[1].failure, "allocate threw std::runtime_error (\"no");
}

TEST(KitRuns, ACallHasATenthOfTheTimeOfItsCheck) {
  const Shared shared;
  const Habits hangs_once{.asked = [&](const Request&) {
    if (shared->asked++ == 0)
      while (true) ::pause();
  }};
  const Report report = run(keeper(hangs_once), nullptr, {.only = "aligns", .deadline_seconds = 3});
  ASSERT_EQ(report.checks.size(), 1U);
  EXPECT_THAT(report.checks[0].failure, StartsWith("allocate(1 bytes, alignment 1, stream 0) did not come back within "
                                                   "0.3 s"));
  EXPECT_THAT(report.checks[0].failure, HasSubstr("\n  what led there:\n    #0 = allocate 1 bytes, alignment 1, "))
      << "it does not hang again";
}

TEST(KitRuns, ADeathIsToldWithTheShortestHistoryThatLeadsThere) {
  const auto failure_of_dying = [](void (*die)()) {
    const Habits dies{.asked = [=](const Request& request) {
      if (request.bytes > 600) die();
    }};
    const Report report = run(keeper(dies), nullptr, {.only = "refuses_huge_sizes"});
    return report.checks.empty() ? std::string() : report.checks[0].failure;
  };
  const char* const history =
      "\n  the shortest history that does it:\n    #0 = allocate 601 bytes, alignment 64, stream 0";
  const std::string code = failure_of_dying([] { ::_exit(3); });
  EXPECT_THAT(code, StartsWith("the process ended with code 3 in the middle of the check in allocate(601 bytes, "
                               "alignment 64, stream 0)"));
  EXPECT_THAT(code, HasSubstr(history));
  const std::string signal = failure_of_dying([] { ::kill(::getpid(), SIGKILL); });
  EXPECT_THAT(signal, HasSubstr(" in allocate(601 bytes, alignment 64, stream 0)"));
  EXPECT_THAT(signal, HasSubstr(history));
}

TEST(KitRuns, ADeathThatDoesNotComeAgainIsToldWithItsSeedWhereItHasOne) {
  for (const std::string check : {"never_overlaps", "aligns"}) {
    const Shared shared;
    const Habits dies_once{.made = [&] {
      if (shared->made++ == 0) ::_exit(3);
    }};
    const Report report = run(keeper(dies_once), nullptr, {.seed = 80, .histories = 1, .only = check});
    ASSERT_EQ(report.checks.size(), 1U);
    const std::string& failure = report.checks[0].failure;
    EXPECT_THAT(failure, StartsWith("the process ended with code 3 in the middle of the check in the constructor"));
    EXPECT_EQ(failure.ends_with("\n  in a history (seed 80)"), check == "never_overlaps") << failure;
    EXPECT_THAT(failure, testing::Not(HasSubstr("shortest history")));
  }
}

TEST(KitRuns, TellWhereACheckStands) {
  for (const std::string check : {"never_overlaps", "aligns"}) {
    const Shared shared;
    const Habits waits{.asked = [&](const Request&) {
      shared->asked = 1;
      for (int i = 0; i < 5000 && !shared->is_told; ++i) ::usleep(1000);
    }};
    std::optional<Progress> first;
    const auto told = [&](const Progress& progress) {
      if (shared->asked == 0) return;
      if (!first) first = progress;
      shared->is_told = true;
    };
    const Report report = run(keeper(waits), nullptr,
                              {.seed = 70, .histories = 1, .history_length = 30, .only = check, .on_progress = told});
    EXPECT_TRUE(report.passed()) << report.text();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->check, check);
    EXPECT_GE(first->calls, 2U) << "the constructor, and the one that waits";
    EXPECT_LT(first->calls, 50U);
    EXPECT_GT(first->seconds, 0);
    EXPECT_LE(first->seconds, report.checks[0].seconds);
    EXPECT_EQ(first->seed, check == "aligns" ? std::nullopt : std::optional<std::uint64_t>(70));
  }
}

TEST(KitRuns, ShortenNothingOnceTheyAreToStop) {
  int made = 0, asked = 0;
  const Habits small{.made = [&] { ++made; }, .handed_out = [](Block& block) { block.bytes += std::size_t{1} << 40; }};
  const Report report = run(keeper(small), nullptr,
                            {.histories = 1,
                             .history_length = 30,
                             .skip = all_but({"never_overlaps", "respects_streams"}),
                             .is_isolated = false,
                             .is_stopping = [&] { return ++asked > 1; }});
  EXPECT_EQ(made, 1);
  ASSERT_EQ(report.checks.size(), 1U);
  EXPECT_THAT(report.checks[0].failure, HasSubstr("which the source did not supply\n  what led there (seed 47):\n"));
  EXPECT_EQ(report.left_out, 1U);
}

TEST(KitRuns, AreOfTheOptionsThatAreGivenAndSayThoseThatAreNoDefaults) {
  const Habits none;
  std::vector<std::size_t> chunks;
  const AllocatorInfo info{.name = "keeper",
                           .options = {OptionSpec::size("chunk", 1 * MiB, "of a segment")},
                           .create = [&](const AllocatorContext& context) {
                             chunks.push_back(context.options.size("chunk"));
                             return std::make_unique<test::Keeper>(context.source, none);
                           }};
  Options options(info.options);
  options.set_text("chunk", "3MiB");
  KitOptions once{.seed = 5, .only = "aligns"};
  once.is_isolated = false;
  EXPECT_EQ(run(info, &options, once).heading(), "keeper:chunk=3MiB, seed 5\n");
  EXPECT_EQ(run(info, nullptr, once).heading(), "keeper, seed 5\n");
  EXPECT_EQ(chunks, (std::vector<std::size_t>{3 * MiB, 1 * MiB}));
}

TEST(KitRuns, OfASlowAllocatorPlayFewerHistories) {
  const Shared shared;
  const Habits slow{.made = [&] { ++shared->made; },
                    .freed = [](const Block&) { std::this_thread::sleep_for(std::chrono::microseconds(100)); }};
  std::optional<Speed> told;
  const Report report = run(keeper(slow), nullptr,
                            {.histories = 40,
                             .history_length = 1,
                             .only = "never_overlaps",
                             .measures_speed = true,
                             .after_speed = [&](const Speed& speed) { told = speed; },
                             .after_each = [&](const CheckResult&) { EXPECT_TRUE(told) << "before the first check"; }});
  ASSERT_TRUE(report.speed);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->pair_ns, report.speed->pair_ns);
  EXPECT_TRUE(report.speed->is_absurd());
  const int fewer = std::clamp(static_cast<int>(40 * 2e4 / report.speed->pair_ns), 3, 40);
  EXPECT_LT(fewer, 40);
  EXPECT_EQ(shared->made, 1 + fewer) << "one to measure";
  EXPECT_THAT(report.summary(), HasSubstr("\nwarning: slow: an allocation and its free take "));
}

TEST(KitRuns, OfAnyOtherPlayAllHistoriesWhetherItsSpeedIsMeasuredOrNot) {
  for (const bool measures : {false, true}) {
    const Shared shared;
    const Habits counts{.made = [&] { ++shared->made; }};
    const Report report =
        run(keeper(counts), nullptr,
            {.histories = 40, .history_length = 1, .only = "never_overlaps", .measures_speed = measures});
    EXPECT_EQ(report.speed.has_value(), measures);
    EXPECT_EQ(shared->made, 40 + (measures ? 1 : 0));
  }
}

TEST(KitsSpeed, IsOfAnAllocatorWithItsYardstickBesideIt) {
  const Shared shared;
  const Habits counts{.made = [&] { ++shared->made; }}, others{.made = [&] { ++shared->asked; }};
  AllocatorInfo yardstick = keeper(others);
  yardstick.name = "yard";
  const auto speed = measure_speed(keeper(counts), Options(), &yardstick);
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->yardstick, "yard");
  EXPECT_GT(speed->pair_ns, 0);
  EXPECT_GT(speed->yardstick_ns, 0);
  EXPECT_LT(speed->yardstick_ns, 1e9);
  EXPECT_EQ(shared->made, 1);
  EXPECT_EQ(shared->asked, 1);
  const auto alone = measure_speed(keeper(counts), Options(), nullptr);
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->yardstick, "");
  EXPECT_EQ(alone->yardstick_ns, 0);
}

TEST(KitsSpeed, IsMeasuredWithBlocksThatStayAsMany) {
  const Shared shared;
  const Habits counts{.handed_out = [&](Block&) { ++shared->made; },
                      .freed =
                          [&](const Block&) {
                            if (shared->made-- != 64) ++shared->asked;
                          }};
  EXPECT_TRUE(measure_speed(keeper(counts), Options(), nullptr));
  EXPECT_EQ(shared->made, 64);
  EXPECT_EQ(shared->asked, 0) << "one goes before the next comes";
}

TEST(KitsSpeed, OfAnAllocatorThatThrowsOrDiesThereIsNone) {
  const Habits throws{.asked = [](const Request&) { throw Error("no"); }};
  EXPECT_FALSE(measure_speed(keeper(throws), Options(), nullptr));
  const Habits dies{.asked = [](const Request&) { ::_exit(3); }};
  EXPECT_FALSE(measure_speed(keeper(dies), Options(), nullptr));
}

}  // namespace
}  // namespace tenon::conformance
