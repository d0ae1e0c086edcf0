// Tenon's binary form read record by record: what each field may be, at its limits, and what may follow what.
#include "replay/support.h"

#include <tenon/replay/formats/io/limits.h>
#include <tenon/replay/formats/tenon/binary_format.h>

#include <gmock/gmock.h>
#include <zlib.h>

#include <string>

namespace tenon::replay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string u32(std::uint64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string chunk(const std::string& payload) {
  const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(payload.data()), static_cast<uInt>(payload.size()));
  return u32(payload.size()) + u32(sum) + payload;
}

std::string head(char version = 3) { return std::string(kBinaryMagic) + version; }
std::string file(const std::string& records) { return head() + chunk(records); }

std::string number(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

template <class... Fields>
std::string record(BinaryTag tag, Fields... fields) {
  return static_cast<char>(tag) + (std::string() + ... + number(static_cast<std::uint64_t>(fields)));
}
std::string text(std::uint64_t index, const std::string& value) { return number(index) + number(value.size()) + value; }

/// 100 bytes on stream 0: the first request of a file, and any after it.
std::string first() { return record(BinaryTag::kAllocate, 0, 100, 0, 0); }
std::string more() { return record(BinaryTag::kAllocate, 0, 0); }
/// Of that many bytes, where `known` sizes came before.
std::string sized(std::uint64_t bytes, int known = 0) {
  return static_cast<char>(BinaryTag::kAllocate) + number(static_cast<std::uint64_t>(known)) + number(bytes) +
         (known == 0 ? number(0) + number(0) : number(0));
}

void expect_taken(const std::string& records) { EXPECT_NO_THROW(read_one(file(records))); }
void expect_refused(const std::string& records, const std::string& why) {
  EXPECT_THAT(refusal_of(file(records)), HasSubstr(why));
}

constexpr std::uint64_t kFarthest = std::uint64_t{1} << 63;

TEST(BinaryReader, ReadsEachFieldWhereItStands) {
  const Trace trace = read_one(file(sized(300) + record(BinaryTag::kAllocate, 1, 70, 1, 9) +  //
                                    record(BinaryTag::kUse, 2, 1) + record(BinaryTag::kFreeDeferred, 2) +
                                    record(BinaryTag::kFreeCompleted, 2) + record(BinaryTag::kEmptyCache) +
                                    record(BinaryTag::kFree, 1)));
  EXPECT_THAT(trace.streams, ElementsAre(0, 9));
  EXPECT_EQ(trace.facts.peak_requested_bytes, 370u);
  EXPECT_EQ(trace.facts.max_request_bytes, 300u);
  EXPECT_EQ(trace.facts.uses, 1u);
  EXPECT_EQ(trace.facts.empty_caches, 1u);
  EXPECT_EQ(trace.facts.end_live_bytes, 0u);
  ASSERT_EQ(trace.events.size(), 7u);
  EXPECT_EQ(trace.events[2].slot, trace.events[0].slot) << "the last but one";
  EXPECT_EQ(trace.events[6].slot, trace.events[1].slot) << "the last one";
}

TEST(BinaryReader, RefusesANumberThatIsNeitherKnownNorNew) {
  expect_refused(record(BinaryTag::kAllocate, 1), "names an unknown size");
  expect_refused(record(BinaryTag::kAllocate, 0, 100, 1), "names an unknown stream");
  expect_refused(first() + record(BinaryTag::kAllocate, 2), "names an unknown size");
  expect_refused(first() + record(BinaryTag::kUse, 1, 2), "names an unknown stream");
  expect_refused(record(BinaryTag::kMark, 1), "names an unknown text");
  expect_refused(record(BinaryTag::kAllocateWithStack, 0, 100, 0, 0, 1), "names an unknown stack");
  const std::string with_stack = record(BinaryTag::kAllocateWithStack, 0, 100, 0, 0, 0, 0);  // of no frames
  expect_refused(with_stack + record(BinaryTag::kAllocateWithStack, 0, 0, 2), "names an unknown stack");
  expect_taken(with_stack + record(BinaryTag::kAllocateWithStack, 0, 0, 0));
}

TEST(BinaryReader, RefusesWhatIsLongerThanItsChunk) {
  const std::string mark = std::string(1, static_cast<char>(BinaryTag::kMark));
  expect_taken(mark + text(0, "abc"));
  expect_refused(mark + number(0) + number(4) + "abc", "a text that ends in the middle");
  expect_refused(mark, "a record that ends in the middle");
  expect_refused(mark + "\x80", "a record that ends in the middle");
  const std::string with_stack = record(BinaryTag::kAllocateWithStack, 0, 100, 0, 0, 0);
  expect_taken(with_stack + number(1) + text(0, "f") + text(1, "g") + number(7));
  expect_refused(with_stack + number(100), "a stack that ends in the middle");
  expect_refused(with_stack + number(1) + text(0, "f"), "a record that ends in the middle");
}

TEST(BinaryReader, StacksComeBackFrameByFrame) {
  const std::string bytes =
      file(record(BinaryTag::kAllocateWithStack, 0, 100, 0, 0, 0, 2) + text(0, "inner") + text(1, "a.py") + number(7) +
           text(2, "outer") + number(1) + number(70000) + record(BinaryTag::kAllocateWithStack, 0, 0, 1, 1) +
           number(0) + number(1) + number(7) + record(BinaryTag::kAllocateWithStack, 0, 0, 0));
  const Trace trace = read_one(bytes, {.with_stacks = true});
  ASSERT_EQ(trace.stack_of_allocation.size(), 3u);
  EXPECT_EQ(trace.stack_of_allocation[0], trace.stack_of_allocation[2]);
  const std::vector<StackFrame> frames = trace.stacks.frames_of(trace.stack_of_allocation[0]);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0], (StackFrame{"inner", "a.py", 7}));
  EXPECT_EQ(frames[1], (StackFrame{"outer", "a.py", 70000}));
  EXPECT_EQ(trace.stacks.frames_of(trace.stack_of_allocation[1]).size(), 1u);
  EXPECT_EQ(trace.stacks.frames.size(), 2u) << "a frame is kept once";
  EXPECT_TRUE(read_one(bytes).stack_of_allocation.empty()) << "only where they are asked for";
}

TEST(BinaryReader, NumbersHave64Bits) {
  const std::string largest = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  const std::string size = std::string(1, static_cast<char>(BinaryTag::kAllocate)) + number(0);
  expect_refused(size + largest + number(0) + number(0), "a size out of range: 18446744073709551615");
  expect_refused(size + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "a number beyond 64 bits");
  expect_refused(size + "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x81\x01", "a number beyond 64 bits");
}

TEST(BinaryReader, SizesAreAtLeastOneByteAndInAll2To62) {
  expect_refused(sized(0), "a size out of range: 0");
  expect_taken(sized(1));
  expect_taken(sized(std::uint64_t{1} << 62));
  expect_refused(sized((std::uint64_t{1} << 62) + 1), "a size out of range");
  expect_refused(sized(std::uint64_t{1} << 62) + sized(1, 1), "a size out of range: 1");
}

TEST(BinaryReader, ABlockIsNamedWhileItIsThere) {
  expect_refused(first() + record(BinaryTag::kFree, 0), "names an allocation that is not there");
  expect_refused(first() + record(BinaryTag::kFree, 2), "names an allocation that is not there");
  expect_taken(first() + record(BinaryTag::kFree, 1));
  const std::string freed = first() + record(BinaryTag::kFree, 1);
  expect_refused(freed + record(BinaryTag::kFree, 1), "frees a block that was freed before");
  expect_refused(freed + record(BinaryTag::kFreeDeferred, 1), "frees a block that was freed before");
  expect_refused(freed + record(BinaryTag::kUse, 1, 0), "uses a block that was freed before");
  expect_refused(freed + record(BinaryTag::kFreeCompleted, 1), "completes a free that is not pending");
}

TEST(BinaryReader, ADeferredFreeIsCompletedOnce) {
  const std::string pending = first() + record(BinaryTag::kFreeDeferred, 1);
  expect_taken(pending);
  expect_refused(pending + record(BinaryTag::kFree, 1), "frees a block that was freed before");
  expect_refused(pending + record(BinaryTag::kUse, 1, 0), "uses a block that was freed before");
  expect_refused(first() + record(BinaryTag::kFreeCompleted, 1), "completes a free that is not pending");
  expect_taken(pending + record(BinaryTag::kFreeCompleted, 1));
  expect_refused(pending + record(BinaryTag::kFreeCompleted, 1) + record(BinaryTag::kFreeCompleted, 1),
                 "completes a free that is not pending");
}

TEST(BinaryReader, ARequestThatRanOutOfMemoryIsGivenBackAtOnce) {
  const std::string fails = record(BinaryTag::kFails, 500, 20);
  const std::string back = record(BinaryTag::kFree, 1);
  const Trace trace = read_one(file(first() + fails + sized(70, 1) + back + more()));
  ASSERT_EQ(trace.ooms.size(), 1u);
  EXPECT_EQ(trace.ooms[0].bytes, 70u);
  EXPECT_EQ(trace.ooms[0].reserved_bytes, 500u);
  EXPECT_EQ(trace.ooms[0].device_free_bytes, 20u);
  EXPECT_EQ(trace.ooms[0].event, 1u);
  EXPECT_EQ(trace.facts.end_live_bytes, 200u);
  const std::string mark = static_cast<char>(BinaryTag::kMark) + text(0, "m");
  expect_taken(fails + mark + first() + mark.substr(0, 1) + number(0) + back);
  expect_refused(fails, "announced, and none follows");
  expect_refused(fails + record(BinaryTag::kEmptyCache), "announced, and another event follows");
  expect_refused(first() + fails + back, "announced, and another event follows");
  expect_refused(first() + fails + record(BinaryTag::kUse, 1, 0), "announced, and another event follows");
  expect_refused(first() + fails + record(BinaryTag::kFreeDeferred, 1), "announced, and another event follows");
  expect_refused(fails + fails, "announced, and another event follows");
  for (const std::string& other : {more(), record(BinaryTag::kUse, 1, 0), record(BinaryTag::kEmptyCache), fails,
                                   record(BinaryTag::kFreeDeferred, 1), record(BinaryTag::kFree, 2)})
    expect_refused(first() + fails + more() + other, "is not given back at once");
}

TEST(BinaryReader, AFailedRequestOfACutRecordingIsGivenBack) {
  const std::string bytes = file(record(BinaryTag::kFails, 500, 20) + first());
  const Trace trace = read_one(bytes + chunk(more()).substr(0, 10));
  EXPECT_EQ(trace.facts.end_live_bytes, 0u);
  EXPECT_EQ(trace.ooms.size(), 1u);
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("was cut: what follows byte " + std::to_string(bytes.size()))));
}

TEST(BinaryReader, ARecordingStartsOnceAndBeforeAnyFree) {
  const std::string starts = record(BinaryTag::kStarts);
  EXPECT_EQ(read_one(file(first() + more() + starts + more())).facts.seeded_blocks, 2u);
  expect_refused(first() + starts + starts, "the recording starts twice, or after a free");
  expect_refused(first() + record(BinaryTag::kFree, 1) + starts, "the recording starts twice, or after a free");
}

TEST(BinaryReader, DeviceCallsBelongToEventsThatAreThere) {
  expect_taken(first() + record(BinaryTag::kDeviceCall, 4, kFarthest, 1));
  expect_refused(first() + record(BinaryTag::kDeviceCall, 5, 1, 0), "a device call that cannot be");
  expect_refused(first() + record(BinaryTag::kDeviceCall, 0, kFarthest + 1, 0), "a device call that cannot be");
  expect_refused(first() + record(BinaryTag::kDeviceCall, 0, 1, 2), "a device call that cannot be");
}

TEST(BinaryReader, SegmentsRiseAndLieInWhatADeviceCanAddress) {
  const auto segment = [](std::uint64_t address, std::uint64_t bytes) {
    return record(BinaryTag::kSegment, address, bytes, 0, 3);
  };
  expect_taken(segment(0, 512) + segment(1, 512) + segment(kFarthest, kMaxDeviceBytes));
  expect_refused(segment(512, 1) + segment(512, 1), "a segment out of range");
  expect_refused(segment(512, 1) + segment(511, 1), "a segment out of range");
  expect_refused(segment(kFarthest + 1, 1), "a segment out of range");
  expect_refused(segment(0, kMaxDeviceBytes + 1), "a segment out of range");
}

TEST(BinaryReader, TheBlocksOfTheBeginningLieOneBehindTheOther) {
  const auto places = [](std::initializer_list<std::uint64_t> distances) {
    std::string records;
    for (const std::uint64_t distance : distances) records += record(BinaryTag::kSeedAddress, distance);
    return records;
  };
  expect_taken(places({0, 1, 512}));
  expect_refused(places({0, 0}), "the address of a block is out of range");
  expect_taken(places({kFarthest - 1, 1}));
  expect_refused(places({kFarthest - 1, 2}), "the address of a block is out of range");
  expect_refused(places({kFarthest + 1}), "the address of a block is out of range");
}

TEST(BinaryReader, TimesAreDistancesThatMayGoBackButNotBelowZero) {
  const auto later = [](std::int64_t us) {
    return record(BinaryTag::kTime,
                  us < 0 ? static_cast<std::uint64_t>(~us) * 2 + 1 : static_cast<std::uint64_t>(us) * 2);
  };
  const Trace trace =
      read_one(file(later(50) + first() + later(-20) + more() + later(0) + more()), {.with_columns = true});
  EXPECT_THAT(trace.columns.times_us, ElementsAre(50, 30, 30));
  EXPECT_TRUE(read_one(file(later(50) + first())).columns.times_us.empty()) << "only where they are asked for";
  expect_taken(later(50) + later(-50));
  expect_refused(later(50) + later(-51), "a time out of range");
  expect_taken(later(kMaxTimeUs) + later(-kMaxTimeUs));
  expect_refused(later(kMaxTimeUs + 1), "a time out of range");
  expect_refused(later(1) + later(kMaxTimeUs), "a time out of range");
}

TEST(BinaryReader, PurposesAreThoseThatThereAre) {
  const std::uint64_t last = kPurposeCount - 1;
  const Trace trace = read_one(file(record(BinaryTag::kPurpose, last) + first()), {.with_columns = true});
  EXPECT_THAT(trace.columns.purposes, ElementsAre(static_cast<Purpose>(last)));
  EXPECT_TRUE(read_one(file(record(BinaryTag::kPurpose, last) + first())).columns.purposes.empty());
  expect_refused(record(BinaryTag::kPurpose, last + 1), "an unknown purpose");
}

TEST(BinaryReader, NamesTheByteAtWhichAnUnknownRecordStands) {
  EXPECT_THAT(refusal_of(file(first() + "\x11")), HasSubstr("byte 22: unknown record 17"));
  EXPECT_THAT(refusal_of(file(std::string(1, '\0'))), HasSubstr("byte 17: unknown record 0"));
}

TEST(BinaryReader, ChunksHaveAtLeastOneByteAndAtMost16MiB) {
  EXPECT_THAT(refusal_of(head() + u32(0) + u32(0)), HasSubstr("byte 9: a chunk of 0 bytes"));
  EXPECT_THAT(refusal_of(head() + u32(kMaxChunkBytes + 1) + u32(0)), HasSubstr("a chunk of 16777217 bytes"));
  const Trace cut = read_one(file(first()) + u32(kMaxChunkBytes) + u32(0) + "x");
  EXPECT_THAT(cut.notes, ElementsAre(HasSubstr("was cut")));
  EXPECT_TRUE(read_one(file(first())).notes.empty());
}

TEST(BinaryReader, ReadsTheVersionsThatWereWritten) {
  for (const char version : {'\1', '\2', '\3'})
    EXPECT_EQ(read_one(head(version) + chunk(first())).facts.allocations, 1u);
  EXPECT_THAT(refusal_of(head('\4') + chunk(first())), HasSubstr("byte 8: format version 4"));
  EXPECT_THAT(refusal_of(head('\0') + chunk(first())), HasSubstr("format version 0"));
  EXPECT_THAT(refusal_of(kBinaryMagic), HasSubstr("the header is truncated"));
}

}  // namespace
}  // namespace tenon::replay
