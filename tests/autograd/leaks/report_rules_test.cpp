// What a report says, word for word: each kind of leak, its numbers, its chain, and where one kind ends and the next
// begins.
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support/meant_leaks.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <regex>
#include <string>
#include <vector>

// Outside of tenon's namespace, as a user's program is.
namespace program {

using tenon::Tensor;
using tenon::memory::LeakReport;
using tenon::memory::LeakWatch;

/// What one step does of a program of twelve.
LeakReport watched(const std::function<void(int step)>& step, int steps = 12, std::size_t warmup = 2) {
  LeakWatch watch(tenon::kCPU, warmup);
  for (int i = 0; i < steps; ++i) {
    step(i);
    watch.step();
  }
  return watch.report();
}

Tensor made(std::int64_t elements) { return tenon::ones({elements}); }
Tensor emptied(std::int64_t elements) { return tenon::zeros({elements}); }
Tensor filled(std::int64_t elements) { return tenon::full({elements}, 3.); }
Tensor parameter(std::int64_t elements) { return tenon::ones({elements}, tenon::requires_grad()); }

}  // namespace program

namespace tenon::test {
namespace {

using memory::Leak;
using memory::LeakKind;
using memory::LeakReport;
using ::testing::HasSubstr;

/// The report's text; places of the program, which have a file and a line, are HERE.
std::string words_of(const LeakReport& report) {
  return std::regex_replace(report.text(), std::regex("( at|\\),| step,) (?!the end)[^\\n]*\\.cpp:[^\\n]*"), "$1 HERE");
}

/// Kept until the report is made: of every step.
struct Kept {
  std::vector<Tensor> tensors;
  void operator+=(Tensor tensor) { tensors.push_back(std::move(tensor)); }
};

const std::string kHolds =
    "  the program holds 10 tensors that this line made: a list, cache or queue that nobody empties, or "
    "that has not been full yet\n";
const std::string kHistory =
    "  a tensor that the program keeps holds the history of former steps, and with it what they saved for backward: "
    "keep loss.item() or loss.detach() instead\n";

TEST(LeakReportRules, TensorsOfOneLineAreCountedAndOneIsShownWithItsMemory) {
  Kept kept;
  EXPECT_EQ(words_of(program::watched([&](int) { kept += program::made(256); })),
            "1.00 KiB a step: 10.0 KiB in 10 blocks (activation), HERE\n" + kHolds +
                "    tensor [256] float32, made at HERE\n    1.00 KiB allocated at HERE\n");
}

TEST(LeakReportRules, ALeafThatOnlyAHistoryHoldsIsPartOfThatHistory) {
  Kept kept;
  const LeakReport report = program::watched([&](int) { kept += program::parameter(1024).exp().sum(); });
  ASSERT_EQ(report.leaks.size(), 1U) << report.text();
  EXPECT_EQ(report.leaks[0].kind, LeakKind::kKeptGraph);
  EXPECT_NEAR(report.leaks[0].bytes_per_step, 2 * 4096 + 4, 64) << "the leaf, what exp saved, and the sum";
}

TEST(LeakReportRules, PurposeAndLabelAreNamed) {
  Kept kept;
  const auto step = [&](int) {
    const LabelGuard label("tables");
    const PurposeGuard purpose(Purpose::kData);
    kept += program::made(256);
  };
  EXPECT_THAT(words_of(program::watched(step)),
              HasSubstr("1.00 KiB a step: 10.0 KiB in 10 blocks (data, tables), HERE\n"));
}

TEST(LeakReportRules, ACacheIsWhatHasAnotherSizeEachTimeAndOfThoseTheLargestIsShown) {
  Kept kept;
  EXPECT_EQ(words_of(program::watched([&](int i) { kept += program::made(256 * (i % 2 + 1)); })),
            "1.50 KiB a step: 15.0 KiB in 10 blocks (activation), HERE\n" + kHolds +
                "    tensor [256] float32, made at HERE\n    2.00 KiB allocated at HERE\n");
  kept = {};
  EXPECT_THAT(words_of(program::watched([&](int i) { kept += program::made(256 * (i % 3 + 1)); })), HasSubstr(kHolds))
      << "of three sizes, but not each of another one";
  kept = {};
  EXPECT_EQ(words_of(program::watched([&](int i) { kept += program::made(256 * (i + 1)); })),
            "7.50 KiB a step: 75.0 KiB in 10 blocks (activation), HERE\n"
            "  the program holds 10 tensors, each of another size, as a cache keyed by shape does: bound it\n"
            "    tensor [768] float32, made at HERE\n    12.0 KiB allocated at HERE\n");
}

TEST(LeakReportRules, AnAliasIsWhatUsesAtMostHalfOfItsStorage) {
  Kept kept;
  EXPECT_EQ(words_of(program::watched([&](int) { kept += program::made(256).narrow(0, 0, 128); })),
            "1.00 KiB a step: 10.0 KiB in 10 blocks (activation), HERE\n"
            "  each is a view or detach() that uses 512 B of a storage of 1.00 KiB and keeps all of it: clone() what "
            "is kept\n"
            "    tensor [128] float32, made at HERE\n    1.00 KiB allocated at HERE\n");
  kept = {};
  EXPECT_EQ(words_of(program::watched([&](int) { kept += program::made(256).narrow(0, 0, 129); })),
            "1.00 KiB a step: 10.0 KiB in 10 blocks (activation), HERE\n" + kHolds +
                "    tensor [129] float32, made at HERE\n    1.00 KiB allocated at HERE\n");
}

TEST(LeakReportRules, OfSeveralTensorsOnOneStorageTheWidestThatIsHeldDecides) {
  Kept kept;
  const auto step = [&](int) {
    const Tensor made = program::made(256);
    kept += made.narrow(0, 0, 64);
    kept += made.narrow(0, 0, 200);
    kept += made.narrow(0, 0, 100);
  };
  EXPECT_THAT(words_of(program::watched(step)), HasSubstr("    tensor [200] float32, made at HERE\n"));
}

TEST(LeakReportRules, AHistoryThatKeepsMoreThanItsEndIsWhatGrows) {
  Kept kept;
  const Tensor p = program::parameter(1024);
  EXPECT_EQ(words_of(program::watched([&](int) { kept += p.exp().sum(); })),
            "4.00 KiB a step: 40.0 KiB in 20 blocks (activation), HERE\n" + kHistory +
                "    tensor [] float32, made at HERE\n"
                "    SumBackward0, recorded at HERE\n    ExpBackward0, recorded at HERE\n"
                "    4.00 KiB allocated at HERE\n");
  kept = {};
  EXPECT_EQ(words_of(program::watched([&](int) { kept += p.exp(); })),
            "4.00 KiB a step: 40.0 KiB in 10 blocks (activation), HERE\n" + kHolds.substr(0, kHolds.size() - 1) +
                "; the history of one, 1 node, lives as long: keep item() or detach() of what needs none\n" +
                "    tensor [1024] float32, made at HERE\n    ExpBackward0, recorded at HERE\n"
                "    4.00 KiB allocated at HERE\n")
      << "it keeps its own result alone";
}

TEST(LeakReportRules, OfALongHistoryThreeNodesAreShownAndTheLastTwo) {
  const Tensor p = program::parameter(1024);
  for (const int ops : {4, 5, 6, 7}) {
    Kept kept;
    const auto step = [&](int) {
      Tensor x = p.exp();
      for (int i = 2; i < ops; ++i) x = x + 1;
      kept += x.sum();
    };
    const std::string recorded = ", recorded at HERE\n";
    std::string chain = "    tensor [] float32, made at HERE\n    SumBackward0" + recorded;
    if (ops == 7) {
      chain += "    AddBackward0" + recorded + "    AddBackward0" + recorded + "    … 2 more nodes\n    AddBackward0" +
               recorded;
    } else {
      for (int i = 2; i < ops; ++i) chain += "    AddBackward0" + recorded;
    }
    EXPECT_THAT(words_of(program::watched(step)),
                HasSubstr(chain + "    ExpBackward0" + recorded + "    4.00 KiB allocated at HERE\n"))
        << ops;
  }
}

TEST(LeakReportRules, AHistoryThatGrowsByItselfIsNamedByItsNodes) {
  Tensor total = zeros({});
  const Tensor p = program::parameter(1024);
  const auto step = [&](int) {
    const Tensor loss = p.exp().sum();
    loss.backward();
    total = total + loss;
  };
  EXPECT_EQ(words_of(program::watched(step)),
            "3 nodes of history a step, HERE\n"
            "  the history of a tensor that the program keeps has 37 nodes and reaches back over former steps: add "
            "loss.item() or loss.detach() instead\n"
            "    tensor [] float32, made at HERE\n"
            "    AddBackward0, recorded at HERE\n    AddBackward0, recorded at HERE\n    AddBackward0, recorded at "
            "HERE\n    … 9 more nodes\n    SumBackward0, recorded at HERE\n    ExpBackward0, recorded at HERE\n");
}

const std::string kRetains =
    "  retain_grad() keeps the gradient of a result for as long as the result lives: leave it out, or let go of the "
    "result";

TEST(LeakReportRules, ResultsThatKeepTheirGradientsAreOneLeakWithThem) {
  Kept kept;
  const Tensor p = program::parameter(1024);
  const auto step = [&](int) {
    const Tensor hidden = p * 2;
    hidden.retain_grad();
    hidden.exp().sum().backward();
    kept += hidden;
  };
  EXPECT_EQ(words_of(program::watched(step)),
            "8.00 KiB a step: 80.0 KiB in 20 blocks (gradient), HERE\n" + kRetains +
                "; the results, which the program holds, are 40.0 KiB of it\n"
                "    tensor [1024] float32, made at HERE\n    4.00 KiB allocated at HERE\n");
}

TEST(LeakReportRules, GradientsOfResultsThatAHistoryHoldsAreALeakOfTheirOwn) {
  Kept kept;
  const Tensor p = program::parameter(1024);
  const auto step = [&](int) {
    const Tensor hidden = p * 2;
    hidden.retain_grad();
    const Tensor loss = (hidden * hidden).sum();
    loss.backward({}, true);
    kept += loss;
  };
  const LeakReport report = program::watched(step);
  const auto leak = std::ranges::find(report.leaks, LeakKind::kRetainedGradient, &Leak::kind);
  ASSERT_NE(leak, report.leaks.end()) << report.text();
  EXPECT_NEAR(leak->bytes_per_step, 4096, 1e-6);
  EXPECT_EQ("  " + leak->sentence, kRetains);
  EXPECT_EQ(std::ranges::count(report.leaks, LeakKind::kKeptGraph, &Leak::kind), 1) << report.text();
}

TEST(LeakReportRules, OneRetainedGradientStaysAndDoesNotGrow) {
  Tensor hidden;
  const Tensor p = program::parameter(1024);
  const auto step = [&](int) {
    hidden = p * 2;
    hidden.retain_grad();
    hidden.exp().sum().backward();
  };
  EXPECT_EQ(words_of(program::watched(step)), "4.00 KiB at the end of each step (gradient), HERE\n" + kRetains +
                                                  "\n    gradient of tensor [1024] float32\n");
}

TEST(LeakReportRules, AGraphThatStaysIsToldFromFourKibibytesOn) {
  for (const std::int64_t count : {1023, 1024}) {
    const Tensor p = program::parameter(count);
    Tensor loss;
    EXPECT_EQ(words_of(program::watched([&](int) { loss = p.exp().sum(); })),
              count < 1024
                  ? "nothing grows in 10 steps\n"
                  : "4.00 KiB at the end of each step (activation), HERE\n"
                    "  its history still keeps what was saved for backward when the step is over: backward() ran with "
                    "retain_graph, or never; use NoGradGuard for what needs no gradient\n"
                    "    tensor [] float32, made at HERE\n");
  }
}

TEST(LeakReportRules, AHookThatHoldsItsTensorIsNamedAndNothingBesideIt) {
  const MeantLeaks meant;
  const Tensor p = program::parameter(1024);
  const auto step = [&](int) {
    const Tensor hidden = p * 2;
    hidden.register_hook([hidden](const Tensor& gradient) { return gradient * hidden; });
    hidden.sum().backward();
  };
  EXPECT_EQ(words_of(program::watched(step)),
            "4.00 KiB a step: 40.0 KiB in 10 blocks (activation), HERE\n"
            "  a hook captured a tensor whose history leads to the hook itself, so that neither ever ends: capture "
            "what the hook needs of it, not the tensor, or remove the hook\n"
            "    tensor [1024] float32, made at HERE\n    4.00 KiB allocated at HERE\n");
}

TEST(LeakReportRules, AHistoryThatGrowsBesideOneThatAHookHoldsIsNamedToo) {
  const MeantLeaks meant;
  const Tensor p = program::parameter(1024);
  Tensor total = zeros({});
  const auto step = [&](int) {
    const Tensor hidden = p * 2;
    hidden.register_hook([hidden](const Tensor& gradient) { return gradient * hidden; });
    hidden.sum().backward();
    const Tensor loss = p.exp().sum();
    loss.backward();
    total = total + loss;
  };
  const LeakReport report = program::watched(step);
  ASSERT_EQ(report.leaks.size(), 2U) << report.text();
  EXPECT_EQ(report.leaks[0].kind, LeakKind::kHook);
  EXPECT_EQ(report.leaks[1].kind, LeakKind::kKeptGraph);
}

TEST(LeakReportRules, AHookOfALeafThatHoldsOtherTensorsIsNamed) {
  const memory::LiveRecording recording;  // so that the leaf is known
  const Tensor p = program::parameter(8);
  const auto step = [&](int) {
    const Tensor table = program::made(1024);
    p.register_hook([table](const Tensor& gradient) { return gradient * table[0]; });
  };
  const LeakReport report = program::watched(step);
  ASSERT_EQ(report.leaks.size(), 1U) << report.text();
  EXPECT_EQ(report.leaks[0].kind, LeakKind::kHook) << report.text();
  EXPECT_NEAR(report.leaks[0].bytes_per_step, 4096, 1e-6);
}

TEST(LeakReportRules, MemoryThatNoTensorHoldsIsOfNobodyKnown) {
  std::vector<Storage> storages;
  EXPECT_EQ(words_of(program::watched([&](int) { storages.push_back(program::made(256).storage()); })),
            "1.00 KiB a step: 10.0 KiB in 10 blocks (activation), HERE\n  no tensor is known that holds it\n");
}

TEST(LeakReportRules, TheFirstStepsAreLeftOutAndFourMoreAreNeeded) {
  for (const std::size_t warmup : {0U, 1U, 2U, 5U}) {
    for (int steps = 0; steps < 12; ++steps) {
      Kept kept;
      const LeakReport report = program::watched([&](int) { kept += program::made(256); }, steps, warmup);
      const std::size_t seen = static_cast<std::size_t>(steps) < warmup ? 0 : static_cast<std::size_t>(steps) - warmup;
      EXPECT_EQ(report.steps, seen);
      const std::string of = std::to_string(seen) + (seen == 1 ? " step" : " steps");
      if (seen < 4) {
        EXPECT_EQ(report.text(), "nothing can be said of " + of + ": at least 4 are needed after the first ones\n");
      } else {
        ASSERT_EQ(report.leaks.size(), 1U);
        EXPECT_TRUE(report.text().starts_with("1.00 KiB a step: ")) << report.text();
        EXPECT_EQ(report.leaks[0].blocks, seen) << "what lived when they were over is left out";
        EXPECT_EQ(report.leaks[0].bytes, seen * 1024);
        EXPECT_NEAR(report.leaks[0].bytes_per_step, 1024, 1e-6);
        EXPECT_TRUE(report.leaks[0].grows);
      }
    }
  }
}

TEST(LeakReportRules, WhatCostsMostComesFirst) {
  Kept kept;
  const auto step = [&](int) {
    kept += program::emptied(64);  // neither their names nor their lines are in this order
    kept += program::made(512);
    kept += program::filled(128);
  };
  const LeakReport report = program::watched(step);
  ASSERT_EQ(report.leaks.size(), 3U) << report.text();
  EXPECT_NEAR(report.leaks[0].bytes_per_step, 2048, 1e-6);
  EXPECT_NEAR(report.leaks[1].bytes_per_step, 512, 1e-6);
  EXPECT_NEAR(report.leaks[2].bytes_per_step, 256, 1e-6);
}

TEST(LeakReportRules, WhatWasFilledAndGrowsNoMoreIsNoLeak) {
  Kept kept;
  const auto step = [&](int i) {
    if (i < 20) kept += program::made(256);
  };
  EXPECT_EQ(program::watched(step, 20).leaks.size(), 1U);
  kept = {};
  EXPECT_EQ(program::watched(step, 90).text(), "nothing grows in 88 steps\n");
}

TEST(LeakReportRules, AVariableOfTheLastStepDoesNotMakeAKindOfItsOwnWhereItIsLessThanAQuarter) {
  // Of all that one line made the last are held by an alias besides, so many of ten.
  for (const int of_another_kind : {1, 2, 3, 5}) {
    std::vector<Storage> storages;
    Kept kept;
    const auto step = [&](int i) {
      const Tensor made = program::made(256);
      if (i >= 12 - of_another_kind) {
        kept += made;
      } else {
        storages.push_back(made.storage());
      }
    };
    const LeakReport report = program::watched(step);
    EXPECT_EQ(report.leaks.size(), 4 * of_another_kind < 10 ? 1U : 2U) << of_another_kind << "\n" << report.text();
  }
}

TEST(LeakReportRules, EachKindHasItsName) {
  using memory::name_of;
  EXPECT_EQ(name_of(LeakKind::kHeld), "held");
  EXPECT_EQ(name_of(LeakKind::kKeptGraph), "kept graph");
  EXPECT_EQ(name_of(LeakKind::kHook), "hook");
  EXPECT_EQ(name_of(LeakKind::kAlias), "alias");
  EXPECT_EQ(name_of(LeakKind::kRetainedGradient), "retained gradient");
  EXPECT_EQ(name_of(LeakKind::kUnknown), "unknown");
}

TEST(LeakReportRules, NumbersOfATextAreRoundedToTheNearest) {
  LeakReport report{.steps = 10, .leaks = {}};
  report.leaks.push_back({.site = "a", .bytes_per_step = 10.5, .bytes = 100, .blocks = 3, .sentence = "b"});
  report.leaks.push_back({.site = "c", .nodes_per_step = 2.4, .sentence = "d", .chain = {"e", "f"}});
  EXPECT_EQ(report.text(),
            "11 B a step: 100 B in 3 blocks (other), a\n  b\n2 nodes of history a step, c\n  d\n    e\n    f\n");
}

}  // namespace
}  // namespace tenon::test
