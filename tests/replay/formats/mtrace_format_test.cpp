// glibc's log of a program's heap.
#include "replay/support.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace tenon::replay {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr char kLog[] =
    "= Start\n"
    "@ ./my prog:(main+0x2a)[0x11be] + 0x1000 0x64\n"
    "@ ./my prog:[0x11d1] + 0x2000 0xc8\n"
    "@ ./my prog:[0x11e6] < 0x1000\n"
    "@ ./my prog:[0x11e6] > 0x3000 0x186a0\n"
    "@ ./my prog:[0x1234] - 0x2000\n"
    "@ ./my prog:[0x126b] + (nil) 0x10000\n"
    "= End\n";

TEST(MtraceReader, ReadsCallsWithAddressesAndSizesInHex) {
  const Trace trace = read_one(kLog);
  EXPECT_EQ(trace.format, "mtrace");
  EXPECT_EQ(trace.facts.allocations, 4u) << "with the one that failed";
  EXPECT_EQ(trace.facts.end_live_bytes, 100'000u);
  EXPECT_EQ(trace.ooms.size(), 1u);
  EXPECT_EQ(trace.ooms.front().bytes, 0x10000u);
}

TEST(MtraceReader, ABlockThatMovesLivesTwiceForAMoment) {
  const Trace trace = read_one("= Start\n+ 0x10 0x64\n< 0x10\n> 0x10 0xc8\n- 0x10\n= End\n");
  EXPECT_EQ(trace.facts.peak_requested_bytes, 300u);
  EXPECT_EQ(trace.facts.frees, 2u);
  EXPECT_EQ(trace.facts.end_live_bytes, 0u);
}

TEST(MtraceReader, AReallocThatFailsKeepsItsBlock) {
  const Trace trace = read_one("= Start\n+ 0x10 0x64\n! 0x10 0x1000\n- 0x10\n= End\n");
  EXPECT_EQ(trace.ooms.size(), 1u);
  EXPECT_EQ(trace.facts.end_live_bytes, 0u);
}

TEST(MtraceReader, ABlockThatIsOlderThanTheLogIsLeftOutAndCounted) {
  const Trace trace = read_one("= Start\n- 0x10\n< 0x20\n> 0x30 0x8\n- (nil)\n= End\n");
  EXPECT_EQ(trace.facts.allocations, 1u);
  EXPECT_THAT(trace.notes, Contains(HasSubstr("2 blocks that were freed are older than the log")));
}

TEST(MtraceReader, ALogThatWasCutIsReadToItsLastWholeLine) {
  const Trace trace = read_one("= Start\n+ 0x10 0x64\n@ ./prog:[0x12");
  EXPECT_EQ(trace.facts.allocations, 1u);
  EXPECT_THAT(trace.notes, Contains(HasSubstr("no '= End'")));
}

TEST(MtraceReader, AnotherLineIsRefusedWithItsPlace) {
  EXPECT_THAT(refusal_of("= Start\n+ 0x10 0x64\n? 0x10\n+ 0x20 0x64\n"), HasSubstr("file:3: expected '@ WHERE OP"));
  EXPECT_THAT(refusal_of("= Start\n+ 0x10 64 bytes\n+ 0x20 0x64\n"), HasSubstr("file:2: "));
  EXPECT_THAT(refusal_of("= Start\n+ 0x1 0x5000000000000000\n= End\n"), HasSubstr("exceed 2^62"));
}

TEST(MtraceReader, KeepsThePlaceOfEachCallWhenAsked) {
  const Trace trace = read_one(kLog, {.with_stacks = true});
  ASSERT_EQ(trace.stack_of_allocation.size(), trace.facts.allocations);
  const auto frame = [&](std::size_t allocation) {
    return trace.stacks.frames.at(trace.stacks.stacks.at(trace.stack_of_allocation[allocation]).front());
  };
  EXPECT_EQ(frame(0).name, "(main+0x2a)[0x11be]");
  EXPECT_EQ(frame(0).file, "./my prog");
  EXPECT_EQ(frame(2).name, "[0x11e6]");
}

}  // namespace
}  // namespace tenon::replay
