// Work in a child process: what it found comes back, and what ended it instead is told with the call under way.
#include <tenon/conformance/process/isolation.h>

#include "support/has_sanitizer.h"

#include <gmock/gmock.h>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>

namespace tenon::conformance {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class Isolated : public testing::Test {
 protected:
  Finding in_child(const std::function<Finding()>& work, const Limits& limits = {}) {
    return run_in_child(work, journal_, limits, tick_, &said_);
  }
  void begin(Call call) { journal_.begin({.call = call, .alignment = 64, .bytes = 4096, .stream = 1}); }

  Journal journal_;
  std::function<bool()> tick_;
  std::string said_;
};

TEST_F(Isolated, WhatWasFoundComesBackWhole) {
  Finding finding = in_child([] {
    Finding found(cause::kTrim, "two lines\nof words");
    found.is_of_a_history = true;
    return found;
  });
  EXPECT_EQ(finding.text, "two lines\nof words");
  EXPECT_EQ(finding.cause, cause::kTrim);
  EXPECT_TRUE(finding.is_of_a_history);
  finding = in_child([] { return Finding("of this check alone"); });
  EXPECT_EQ(finding.text, "of this check alone");
  EXPECT_EQ(finding.cause, "");
  EXPECT_FALSE(finding.is_of_a_history);
  EXPECT_TRUE(in_child([] { return Finding(); }).empty());
  const std::string much(200'000, 'x');
  EXPECT_EQ(in_child([&] { return Finding(much); }).text, much);
}

TEST_F(Isolated, WhatLeavesItAsAnExceptionIsAFinding) {
  const Finding error = in_child([]() -> Finding { throw std::runtime_error("no"); });
  EXPECT_EQ(error.text, "an error where none may be: no");
  const Finding broken = in_child([]() -> Finding { throw BrokenPromise({cause::kLeak, "it kept all"}); });
  EXPECT_EQ(broken.text, "it kept all");
  EXPECT_EQ(broken.cause, cause::kLeak);
}

TEST_F(Isolated, AProcessThatEndsInTheMiddleIsToldWithItsCodeAndTheCall) {
  Finding finding = in_child([]() -> Finding { ::_exit(3); });
  EXPECT_EQ(finding.cause, "code 3");
  EXPECT_THAT(finding.text, StartsWith("the process ended with code 3 in the middle of the check, in no call of the "
                                       "allocator"));
  finding = in_child([&]() -> Finding {
    begin(Call::kAllocate);
    ::_exit(4);
  });
  EXPECT_EQ(finding.cause, "code 4 in allocate");
  EXPECT_THAT(finding.text,
              StartsWith("the process ended with code 4 in the middle of the check in allocate(4096 bytes, "
                         "alignment 64, stream 1)"));
}

TEST_F(Isolated, ASignalIsToldWithTheCall) {
  const Finding finding = in_child([&]() -> Finding {
    begin(Call::kTrim);
    ::kill(::getpid(), SIGKILL);
    return {};
  });
  EXPECT_EQ(finding.cause, "signal 9 in trim");
  EXPECT_THAT(finding.text, HasSubstr(" in trim("));
}

TEST_F(Isolated, ACallThatDoesNotComeBackIsEndedAtItsLimit) {
  for (const bool is_trial : {false, true}) {
    const Finding finding = in_child(
        [&]() -> Finding {
          begin(Call::kTrim);
          while (true) ::pause();
        },
        {.deadline_seconds = 20, .call_seconds = 0.1, .is_trial = is_trial});
    EXPECT_EQ(finding.cause, "hang in trim");
    EXPECT_THAT(finding.text, AllOf(StartsWith("trim("), HasSubstr("did not come back within 0.1 s")));
  }
}

TEST_F(Isolated, OneThatDoesNotHearTheQuestionWhereItStandsIsEndedAllTheSame) {
  const Finding finding = in_child(
      [&]() -> Finding {
        sigset_t all;
        ::sigfillset(&all);
        ::sigprocmask(SIG_BLOCK, &all, nullptr);
        begin(Call::kTrim);
        while (true) ::pause();
      },
      {.deadline_seconds = 20, .call_seconds = 0.1});
  EXPECT_EQ(finding.cause, "hang in trim");
}

TEST_F(Isolated, OutsideOfACallTheDeadlineAloneCounts) {
  const Finding finding = in_child(
      []() -> Finding {
        while (true) ::pause();
      },
      {.deadline_seconds = 0.3, .call_seconds = 0.05});
  EXPECT_EQ(finding.cause, "deadline");
  EXPECT_THAT(finding.text,
              StartsWith("the check did not end within 0.3 s, 0 calls were made; --deadline gives it longer"));
}

TEST_F(Isolated, AtTheDeadlineTheCallUnderWayIsTold) {
  const Finding finding = in_child(
      [&]() -> Finding {
        journal_.end(journal_.begin({.call = Call::kReport}));
        begin(Call::kTrim);
        while (true) ::pause();
      },
      {.deadline_seconds = 0.2, .call_seconds = 50});
  EXPECT_EQ(finding.cause, "deadline in trim");
  EXPECT_THAT(finding.text, StartsWith("the check did not end within 0.2 s, 2 calls were made; --deadline gives it "
                                       "longer; under way was trim(4096)"));
}

TEST_F(Isolated, OfAHangTheStackIsToldUnlessItIsATrial) {
  if (test::has_a_sanitizer()) GTEST_SKIP() << "signals are left to it";
  for (const bool is_trial : {false, true}) {
    const Finding finding = in_child(
        [&]() -> Finding {
          begin(Call::kTrim);
          while (true) ::pause();
        },
        {.deadline_seconds = 20, .call_seconds = 0.1, .is_trial = is_trial});
    EXPECT_EQ(finding.text.find('\n') == std::string::npos, is_trial) << finding.text;
  }
}

TEST_F(Isolated, ACallThatComputesIsStuckToo) {
  const Finding finding = in_child(
      [&]() -> Finding {
        begin(Call::kAllocate);
        for (volatile int i = 0;;) i = i ^ 1;
      },
      {.deadline_seconds = 50, .call_seconds = 0.1, .is_trial = true});
  EXPECT_EQ(finding.cause, "hang in allocate");
}

TEST_F(Isolated, WhatEndsBadlyBehindItsAnswerIsToldWhereItFoundNothing) {
  const auto dies_late = [&](const Finding& found) {
    return in_child([&] {
      std::FILE* const last_words = ::fopencookie(
          nullptr, "w",
          {.read = nullptr,
           .write = [](void*, const char*, std::size_t) -> ssize_t { return ::kill(::getpid(), SIGKILL); },
           .seek = nullptr,
           .close = nullptr});
      std::fputs("said when all is written out", last_words);
      return found;
    });
  };
  const Finding late = dies_late({});
  EXPECT_EQ(late.cause, "signal 9");
  EXPECT_EQ(late.text,
            "the check found nothing, and its process ended with signal 9, as it does where a sanitizer found "
            "something: it is on standard error");
  EXPECT_EQ(dies_late({cause::kLeak, "it kept all"}).text, "it kept all");
}

TEST_F(Isolated, CallsThatGoOnAreNotStuck) {
  const Finding finding = in_child(
      [&]() -> Finding {
        while (true) {
          Journal::Entry& entry = journal_.begin({.call = Call::kReport});
          ::usleep(10'000);
          journal_.end(entry);
        }
      },
      {.deadline_seconds = 0.6, .call_seconds = 0.3, .is_trial = true});
  EXPECT_THAT(finding.cause, StartsWith("deadline"));
}

TEST_F(Isolated, IsStoppedWhereItIsAskedAndHasNoResult) {
  int asked = 0;
  tick_ = [&] { return ++asked < 3; };
  const Finding finding = in_child([]() -> Finding {
    while (true) ::pause();
  });
  EXPECT_EQ(finding.cause, kStopped);
  EXPECT_EQ(finding.text, "ended before it had a result");
  EXPECT_EQ(asked, 3);
}

TEST_F(Isolated, WhatItSaysIsKeptAsFarAsItCanBeRead) {
  EXPECT_TRUE(in_child([] {
                std::fputs("to standard error\n", stderr);
                std::puts("and output");
                std::fflush(stdout);
                return Finding();
              }).empty());
  EXPECT_EQ(said_, "to standard error\nand output\n");
  said_.clear();
  in_child([] {
    for (int i = 0; i < 4000; ++i) std::fputs("sixteen letters\n", stderr);
    return Finding();
  });
  EXPECT_EQ(said_.size(), 16U * 1024);
  testing::internal::CaptureStderr();
  run_in_child(
      [] {
        std::fputs("to nobody\n", stderr);
        return Finding();
      },
      journal_, {});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Isolated, LeavesNoDescriptorOpen) {
  const auto open_ones = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(std::filesystem::begin(all), std::filesystem::end(all));
  };
  const auto before = open_ones();
  for (int i = 0; i < 3; ++i) {
    in_child([] { return Finding("found"); });
    run_in_child([] { return Finding(); }, journal_, {});
  }
  EXPECT_EQ(open_ones(), before);
}

TEST_F(Isolated, EachPieceBeginsWithAnEmptyJournal) {
  journal_.note_seed(5);
  begin(Call::kTrim);
  EXPECT_TRUE(in_child([&] {
                return journal_.has_seed() || journal_.calls() != 0 ? Finding("something is left") : Finding();
              }).empty());
  EXPECT_EQ(journal_.in_flight(), "");
}

}  // namespace
}  // namespace tenon::conformance
