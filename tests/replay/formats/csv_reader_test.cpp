// RMM logs and minimalloc problems.
#include "replay/support.h"

#include <algorithm>

namespace tenon::replay {
namespace {

constexpr char kRmm[] = "Thread,Time,Action,Pointer,Size,Stream\n";

TEST(RmmReader, ReadsStreamsAndPointersInHex) {
  const Trace trace =
      read_one(std::string(kRmm) +
               "12,10:00:00.000001,allocate,0x7f0010,1024,0x2\n12,10:00:00.000002,allocate,0x7f0020,8,0x1a\n"
               "12,10:00:00.000003,free,0x7f0010,1024,0x2\n");
  EXPECT_EQ(trace.format, "rmm");
  EXPECT_EQ(trace.facts.allocations, 2u);
  EXPECT_EQ(trace.facts.peak_requested_bytes, 1032u);
  EXPECT_EQ(trace.streams, (std::vector<std::uint64_t>{2, 26}));
}

TEST(RmmReader, KeepsRequestsThatFailedAndSaysSo) {
  const Trace trace = read_one(std::string(kRmm) + "1,0,allocate failure,(nil),4096,0x0\n1,0,allocate,0x10,8,0x0\n");
  EXPECT_EQ(trace.facts.allocations, 2u);
  EXPECT_EQ(trace.facts.frees, 1u);
  EXPECT_EQ(trace.ooms.size(), 1u);
  EXPECT_NE(trace.notes.front().find("1 request ran out of memory"), std::string::npos);
}

TEST(RmmReader, LetsAnAddressBeUsedAgain) {
  EXPECT_EQ(read_one(std::string(kRmm) + "1,0,allocate,0x10,8,0\n1,0,free,0x10,8,0\n1,0,allocate,0x10,16,0\n")
                .facts.end_live_bytes,
            16u);
}

TEST(RmmReader, AFreeCountsWhateverSizeAndStreamItNames) {
  const Trace trace = read_one("\xef\xbb\xbf" + std::string(kRmm) +
                               "1,0,allocate,0x10,8,0x1\r\n2,0,allocate,(nil),0,0x0\r\n2,0,free,0x10,0,0x2\r\n"
                               "2,0,free,(nil),0,0x0");
  EXPECT_EQ(trace.facts.frees, 1u);
  EXPECT_EQ(trace.facts.end_live_bytes, 0u);
  ASSERT_EQ(trace.notes.size(), 2u);
  EXPECT_NE(trace.notes[0].find("2 requests of 0 bytes"), std::string::npos);
  EXPECT_NE(trace.notes[1].find("1 free names another stream"), std::string::npos);
}

TEST(RmmReader, RemarksAreSkipped) {
  const Trace trace = read_one("# host: x\n#\n" + std::string(kRmm) + "# a remark\n1,0,allocate,0x10,8,0\n");
  EXPECT_EQ(trace.format, "rmm");
  EXPECT_EQ(trace.facts.allocations, 1u);
}

TEST(RmmReader, LinesThatEndInCarriageReturnsAloneAreRefused) {
  std::string text = std::string(kRmm) + "1,0,allocate,0x10,8,0\n";
  std::ranges::replace(text, '\n', '\r');
  EXPECT_NE(refusal_of(text).find("carriage returns alone"), std::string::npos) << refusal_of(text);
}

TEST(RmmReader, NamesLineAndReason) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"1,0,free,0x10,8,0\n", "file:2: frees 0x10, which is not alive"},
      {"1,0,allocate,0x10,8,0\n1,0,allocate,0x10,8,0\n", "file:3: allocates 0x10, which is alive"},
      {"1,0,realloc,0x10,8,0\n", "file:2: unknown action 'realloc'"},
      {"1,0,allocate,0x10,x,0\n", "file:2: expected a size in bytes, not 'x'"},
      {"1,0,allocate,0x10,-8,0\n", "file:2: expected a size in bytes"},
      {"1,0,allocate,zebra,8,0\n", "file:2: expected a pointer"},
      {"1,0,allocate,0x10,8\n", "file:2: a row of 5 fields under a header of 6"},
      {"1,0,allocate,0x10,99999999999999999999,0\n", "does not fit in 63 bits"},
  };
  for (const auto& [row, reason] : mistakes)
    EXPECT_NE(refusal_of(std::string(kRmm) + row).find(reason), std::string::npos)
        << refusal_of(std::string(kRmm) + row);
}

TEST(RmmReader, TakesPointersAndStreamsOf64BitsAndSizesOf63) {
  const Trace trace = read_one(std::string(kRmm) + "1,0,allocate,0xffff800000000000,8,0xffffffffffffffff\n" +
                               "1,0,allocate,0x8000000000000000,8,0\n1,0,free,0xffff800000000000,8,0\n");
  EXPECT_EQ(trace.facts.allocations, 2U);
  EXPECT_EQ(trace.facts.end_live_bytes, 8U);
  EXPECT_EQ(trace.streams, (std::vector<std::uint64_t>{~std::uint64_t{0}, 0}));
  for (const char* size : {"9223372036854775808", "18446744073709551615", "18446744073709551616"})
    EXPECT_EQ(refusal_of(std::string(kRmm) + "1,0,allocate,0x10," + size + ",0\n"),
              std::string("file:2: a size in bytes does not fit in 63 bits: ") + size);
  for (const char* pointer : {"0x10000000000000000", "0xfffffffffffffffffffffff"})
    EXPECT_EQ(refusal_of(std::string(kRmm) + "1,0,allocate," + pointer + ",8,0\n"),
              std::string("file:2: a pointer does not fit in 63 bits: ") + std::string(pointer).substr(2));
}

TEST(RmmReader, SaysWhatItDoesNotTakeFromALog) {
  const std::string old = "Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Start,End\n";
  EXPECT_NE(refusal_of(old + "Alloc,0,0x10,0,8,1,2,0.1,0.2\n").find("file:1: a log of RMM 0.14 or older"),
            std::string::npos);
  const Trace trace = read_one(std::string(kRmm) + "1,0,allocate,0x10,8,0\n1,0,free,0x10,4,0\n");
  EXPECT_NE(trace.notes.back().find("1 free names another size than its allocation"), std::string::npos);
}

TEST(MinimallocReader, OrdersByTimeWithFreesFirst) {
  const Trace trace = read_one("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\n");
  EXPECT_EQ(trace.facts.peak_requested_bytes, 8u) << "b1 is gone when b2 begins";
  EXPECT_EQ(trace.facts.events, 6u);
}

TEST(MinimallocReader, TakesTheOtherColumnNames) {
  const Trace trace = read_one("buffer_id,start,end,size,alignment\n1,0,2,4,1\n2,2,5,4,1\n");
  EXPECT_EQ(trace.facts.peak_requested_bytes, 8u) << "`end` is inclusive: both live at 2";
}

TEST(MinimallocReader, GapsAreCheckedAndSaidToBeLeftOut) {
  const std::string header = "id,lower,upper,size,gaps\n";
  const Trace trace = read_one(header + "a,0,9,8,1-2 4-5@0:4\nb,0,9,8,\n");
  EXPECT_EQ(trace.facts.peak_requested_bytes, 16u);
  EXPECT_NE(trace.notes.back().find("1 buffer has gaps"), std::string::npos) << trace.notes.back();
  for (const char* wrong : {"junk", "1", "1-", "2-1", "1-2@3", "1-2@3:3", "1-2,"})
    EXPECT_NE(refusal_of(header + "a,0,9,8," + wrong + "\n").find("file:2: "), std::string::npos) << wrong;
}

}  // namespace
}  // namespace tenon::replay
