// The journal: which call is under way, how far they are, and the history that they were.
#include <tenon/conformance/history_runner.h>
#include <tenon/conformance/journal.h>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tenon::conformance {
namespace {

CallFacts facts(Call call, std::uint64_t bytes = 0, std::uint64_t stream = 0, std::uint64_t address = 0) {
  return {.call = call, .alignment = 64, .bytes = bytes, .stream = stream, .address = address};
}

class TheJournal : public testing::Test {
 protected:
  void made(const CallFacts& call, std::uint64_t address = 0) { journal_.end(journal_.begin(call), address); }
  Journal journal_;
};

TEST_F(TheJournal, NamesTheCallThatIsUnderWayTheOneThatBeganFirst) {
  EXPECT_EQ(journal_.in_flight(), "");
  EXPECT_EQ(journal_.in_flight_name(), "");
  Journal::Entry& allocate = journal_.begin(facts(Call::kAllocate, 4096, 2));
  EXPECT_EQ(journal_.in_flight(), "allocate(4096 bytes, alignment 64, stream 2)");
  Journal::Entry& trim = journal_.begin(facts(Call::kTrim));
  EXPECT_EQ(journal_.in_flight_name(), "allocate");
  journal_.end(allocate, 512);
  EXPECT_EQ(journal_.in_flight_name(), "trim");
  journal_.end(trim);
  EXPECT_EQ(journal_.in_flight_name(), "");
}

TEST_F(TheJournal, ProgressRisesWithEachBeginningAndEndAndCallsAreCounted) {
  Journal::Entry& entry = journal_.begin(facts(Call::kAllocate, 1));
  EXPECT_EQ(journal_.progress(), 1U);
  EXPECT_EQ(journal_.calls(), 1U);
  journal_.end(entry, 64);
  EXPECT_EQ(journal_.progress(), 2U);
  EXPECT_EQ(journal_.calls(), 1U);
  made(facts(Call::kCreate));
  EXPECT_EQ(journal_.calls(), 2U) << "of all allocators";
  journal_.clear();
  EXPECT_EQ(journal_.progress() + journal_.calls(), 0U);
}

TEST_F(TheJournal, IsAHistoryOfWhatWasDoneToTheLastAllocator) {
  made(facts(Call::kCreate));
  made(facts(Call::kAllocate, 7), 0x100);
  made(facts(Call::kCreate));
  made(facts(Call::kAllocate, 512, 1), 0x1000);
  made(facts(Call::kAllocate, 1024, 2), 0x2000);
  made(facts(Call::kRecordUse, 0, 3, 0x1000));
  made(facts(Call::kReport));
  made(facts(Call::kDeallocate, 0, 1, 0x1000));
  made(facts(Call::kDeallocate, 0, 1, 0x1000));  // which is known no more
  made(facts(Call::kComplete, 0, 2));
  made(facts(Call::kTrim, 99));
  made(facts(Call::kAllocate, 33), 0);  // which had no memory
  made(facts(Call::kAllocate, 512, 1), 0x1000);
  journal_.begin(facts(Call::kDeallocate, 0, 0, 0x1000));
  using Kind = Operation::Kind;
  const auto op = [](Kind kind, std::uint32_t slot, std::size_t bytes, std::uint64_t stream) {
    return Operation{.kind = kind, .slot = slot, .bytes = bytes, .alignment = 64, .stream = stream};
  };
  EXPECT_EQ(journal_.operations(),
            (Operations{op(Kind::kAllocate, 0, 512, 1), op(Kind::kAllocate, 1, 1024, 2), op(Kind::kUse, 0, 0, 3),
                        op(Kind::kFree, 0, 0, 1), op(Kind::kComplete, 0, 0, 2), op(Kind::kTrim, 0, 99, 0),
                        op(Kind::kAllocate, 2, 33, 0), op(Kind::kAllocate, 3, 512, 1), op(Kind::kFree, 3, 0, 0)}))
      << to_string(journal_.operations());
  journal_.clear();
  EXPECT_TRUE(journal_.operations().empty());
}

TEST_F(TheJournal, AnAlignmentOfNoneIsOfOneByte) {
  made({.call = Call::kAllocate, .bytes = 5}, 0x100);
  EXPECT_EQ(journal_.operations().at(0).alignment, 1U);
}

TEST_F(TheJournal, WhatNoLongerFitsIsStillSeenWhileItIsUnderWay) {
  constexpr int kMost = 65536;
  for (int i = 0; i < kMost; ++i) made(facts(Call::kAllocate, 1), 64);
  EXPECT_EQ(journal_.operations().size(), std::size_t{kMost});
  Journal::Entry& late = journal_.begin(facts(Call::kTrim, 5));
  EXPECT_EQ(journal_.in_flight_name(), "trim");
  EXPECT_TRUE(journal_.operations().empty()) << "it is no longer whole";
  std::thread([&] {
    Journal::Entry& other = journal_.begin(facts(Call::kReport));
    journal_.end(late);
    EXPECT_EQ(journal_.in_flight_name(), "report") << "each thread has a place";
    journal_.end(other);
  }).join();
  EXPECT_EQ(journal_.in_flight_name(), "");
  EXPECT_EQ(journal_.calls(), std::uint64_t{kMost} + 2);
  journal_.begin(facts(Call::kTrim));
  made(facts(Call::kCreate));
  EXPECT_EQ(journal_.in_flight_name(), "") << "a creation begins anew";
}

TEST_F(TheJournal, KeepsTheSeedAndTheSettingsOfWhatRuns) {
  EXPECT_FALSE(journal_.has_seed());
  journal_.note_seed(77);
  EXPECT_TRUE(journal_.has_seed());
  EXPECT_EQ(journal_.seed(), 77U);
  RunSettings settings;
  settings.capacity_bytes = 12345;
  settings.manual_completion = false;
  settings.fault = {.index = 3, .from_then_on = true, .order_calls_too = true};
  settings.only = {cause::kLeak};
  journal_.note_settings(settings);
  EXPECT_EQ(journal_.settings().capacity_bytes, 12345U);
  EXPECT_FALSE(journal_.settings().manual_completion);
  EXPECT_EQ(journal_.settings().fault.index, 3);
  EXPECT_TRUE(journal_.settings().fault.from_then_on);
  EXPECT_TRUE(journal_.settings().fault.order_calls_too);
  EXPECT_FALSE(journal_.judges_requests());
  settings.only = {cause::kLeak, cause::kRequest};
  journal_.note_settings(settings);
  EXPECT_TRUE(journal_.judges_requests());
  journal_.clear();
  EXPECT_FALSE(journal_.has_seed());
  EXPECT_FALSE(journal_.judges_requests());
}

TEST_F(TheJournal, ForgetsAnOldDeathWithAllElse) {
  CrashNote& note = journal_.crash_note();
  note.signal = 11;
  note.frame_count = 3;
  note.named_count = 2;
  note.words[0] = 'x';
  note.fault_address = 0x1000;
  journal_.begin(facts(Call::kTrim));
  journal_.clear();
  EXPECT_EQ(note.signal, 0);
  EXPECT_EQ(note.frame_count, 0);
  EXPECT_EQ(note.named_count, 0);
  EXPECT_EQ(note.words[0], 0);
  EXPECT_EQ(note.fault_address, 0U);
  EXPECT_EQ(journal_.in_flight(), "");
}

}  // namespace
}  // namespace tenon::conformance
