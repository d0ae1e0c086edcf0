// The oracle: which blocks may be handed out, and which bytes may go back, while streams are on their way.
#include <tenon/conformance/oracle.h>

#include <tenon/memory/sources/address_only_source.h>

#include <gmock/gmock.h>

#include <vector>

namespace tenon::conformance {
namespace {

using testing::HasSubstr;

class TheOracle : public testing::Test {
 protected:
  static Block block(std::uintptr_t begin, std::size_t bytes) {
    return {.data = reinterpret_cast<void*>(begin), .bytes = bytes};
  }
  AddressOnlySource device_{{.device = "oracle", .manual_completion = true}};
  Oracle oracle_{device_};
};

TEST_F(TheOracle, LiveBlocksShareNoByte) {
  EXPECT_TRUE(oracle_.hand_out(block(0x1000, 0x100), {0}).empty());
  EXPECT_TRUE(oracle_.hand_out(block(0x1100, 0x100), {0}).empty()) << "one that begins where it ends";
  EXPECT_TRUE(oracle_.hand_out(block(0xf00, 0x100), {0}).empty()) << "one that ends where it begins";
  const Finding last = oracle_.hand_out(block(0x10ff, 1), {0});
  EXPECT_EQ(last.cause, cause::kOverlap);
  EXPECT_EQ(last.text, "the block [0x10ff, 0x1100) overlaps the live block [0x1000, 0x1100)");
  EXPECT_EQ(oracle_.hand_out(block(0x1000, 1), {0}).cause, cause::kOverlap);
  oracle_.take_back(block(0x1000, 0x100), {{0}});
  EXPECT_TRUE(oracle_.hand_out(block(0x1000, 0x100), {0}).empty()) << "it is free again";
}

TEST_F(TheOracle, AFreedBlockIsForItsStreamAtOnceAndForOthersWhenItHasGotThere) {
  const Block freed = block(0x1000, 0x100);
  ASSERT_TRUE(oracle_.hand_out(freed, {1}).empty());
  oracle_.take_back(freed, {{1}});
  EXPECT_TRUE(oracle_.hand_out(freed, {1}).empty()) << "in order behind it";
  oracle_.take_back(freed, {{1}});
  for (const auto& [begin, bytes] : {std::pair(0x1000, 0x100), std::pair(0x10ff, 0x10), std::pair(0xff0, 0x11)}) {
    const Finding finding =
        oracle_.hand_out(block(static_cast<std::uintptr_t>(begin), static_cast<std::size_t>(bytes)), {2});
    EXPECT_EQ(finding.cause, cause::kStreams);
    EXPECT_THAT(finding.text, HasSubstr("for stream 2 was freed while stream 1 still used it, and that stream has not "
                                        "got there yet"));
    oracle_.take_back(block(static_cast<std::uintptr_t>(begin), 0), {});
  }
  EXPECT_TRUE(oracle_.hand_out(block(0x1100, 0x100), {2}).empty()) << "beside it";
  EXPECT_TRUE(oracle_.hand_out(block(0xf00, 0x100), {2}).empty());
  device_.complete(StreamRef{1});
  EXPECT_TRUE(oracle_.hand_out(freed, {2}).empty());
}

TEST_F(TheOracle, EveryStreamThatUsedItHasToGetThere) {
  const Block freed = block(0x1000, 0x100);
  ASSERT_TRUE(oracle_.hand_out(freed, {1}).empty());
  oracle_.take_back(freed, {{1}, {2}, {3}});
  device_.complete(StreamRef{1});
  device_.complete(StreamRef{3});
  EXPECT_THAT(oracle_.hand_out(freed, {1}).text, HasSubstr("while stream 2 still used it"));
  oracle_.take_back(freed, {});
  device_.complete(StreamRef{2});
  EXPECT_TRUE(oracle_.hand_out(freed, {1}).empty());
}

TEST_F(TheOracle, BytesGoBackToTheDeviceWhenNoStreamUsesThem) {
  const Block freed = block(0x1000, 0x100);
  ASSERT_TRUE(oracle_.hand_out(freed, {1}).empty());
  EXPECT_EQ(oracle_.still_used(0x1000, 0x100), "") << "of live blocks others judge";
  oracle_.take_back(freed, {{1}});
  EXPECT_EQ(oracle_.still_used(0x1000, 0x200), "[0x1000, 0x1200) went back to the device while stream 1 still used it");
  EXPECT_NE(oracle_.still_used(0x10ff, 1), "");
  EXPECT_NE(oracle_.still_used(0xfff, 2), "");
  EXPECT_EQ(oracle_.still_used(0x1100, 0x100), "");
  EXPECT_EQ(oracle_.still_used(0xf00, 0x100), "");
  device_.complete(StreamRef{1});
  EXPECT_EQ(oracle_.still_used(0x1000, 0x100), "");
}

TEST_F(TheOracle, APageUnderTwoAddressesIsHandedOutOnce) {
  ASSERT_TRUE(oracle_.hand_out(block(0x1000, 0x100), {1}, {{0, 0x80}, {0x200, 0x280}}).empty());
  EXPECT_TRUE(oracle_.hand_out(block(0x3000, 0x100), {1}, {{0x80, 0x180}}).empty());
  const Finding shared = oracle_.hand_out(block(0x5000, 0x100), {1}, {{0x27f, 0x37f}});
  EXPECT_EQ(shared.cause, cause::kOverlap);
  EXPECT_EQ(shared.text,
            "the block [0x5000, 0x5100) shares physical memory with the live block [0x1000, 0x1100): a page is mapped "
            "at two addresses and handed out at both");
  oracle_.take_back(block(0x1000, 0x100), {{1}});
  const Finding early = oracle_.hand_out(block(0x7000, 0x100), {2}, {{0x40, 0x60}});
  EXPECT_EQ(early.cause, cause::kStreams) << "the same bytes at another address";
  device_.complete(StreamRef{1});
  EXPECT_TRUE(oracle_.hand_out(block(0x9000, 0x100), {2}, {{0x0, 0x80}, {0x280, 0x300}}).empty());
}

TEST_F(TheOracle, ManyFreedBlocksAreForgottenOnceTheirStreamsGotThere) {
  for (std::uintptr_t i = 1; i <= 600; ++i) {
    ASSERT_TRUE(oracle_.hand_out(block(i << 12, 0x100), {1}).empty());
    oracle_.take_back(block(i << 12, 0x100), {{1}});
    if (i % 100 == 0) device_.complete(StreamRef{1});
  }
  for (std::uintptr_t i = 1; i <= 600; ++i) ASSERT_TRUE(oracle_.hand_out(block(i << 12, 0x100), {2}).empty()) << i;
}

}  // namespace
}  // namespace tenon::conformance
