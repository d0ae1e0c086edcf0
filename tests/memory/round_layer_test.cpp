// The layer `round`: which size a policy is asked for, and that its free asks for the same.
#include <tenon/memory/sources/address_only_source.h>

#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <limits>

namespace tenon {
namespace {

using test::make_stack;

/// Blocks as long as they were asked for; a free has to name the same size.
class Exact final : public Allocator {
 public:
  Block allocate(const Request& request) override {
    return {.data = reinterpret_cast<void*>(4096), .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block& block, StreamRef) noexcept override { EXPECT_EQ(block.bytes, block.request.bytes); }
  void record_use(const Block& block, StreamRef) override { EXPECT_EQ(block.bytes, block.request.bytes); }
  std::size_t trim(std::size_t) override { return 0; }
  void walk(SegmentVisitor&) const override {}
  void report(PolicyStats&) const override {}
};

/// The size that the policy is asked for.
std::size_t rounded(const std::vector<std::pair<std::string, std::string>>& options, std::size_t bytes) {
  AddressOnlySource source;
  StackConfig config{.policy = {.name = "exact", .summary = "", .options = {}, .create = [](const AllocatorContext&) {
                                  return std::make_unique<Exact>();
                                }}};
  config.layers.push_back(test::layer({"round", options}));
  const auto stack = AllocatorStack::make(source, config);
  const Block block = stack->allocate({.bytes = bytes});
  EXPECT_EQ(block.request.bytes, bytes);
  EXPECT_EQ(stack->stats().requested_bytes.current, static_cast<std::int64_t>(bytes));
  stack->record_use(block, {2});
  stack->deallocate(block);
  EXPECT_EQ(stack->stats().allocated_bytes.current, 0);
  stack->check_invariants();
  return block.bytes;
}

TEST(RoundLayer, LeavesSizesAloneUnlessTold) { EXPECT_EQ(rounded({}, 1201), 1201u); }

TEST(RoundLayer, RoundsToAMultiple) {
  EXPECT_EQ(rounded({{"multiple", "1KiB"}}, 1), 1024u);
  EXPECT_EQ(rounded({{"multiple", "1KiB"}}, 1024), 1024u);
  EXPECT_EQ(rounded({{"multiple", "3000B"}}, 3001), 6000u);
}

// PyTorch's own example: 1200 with 4 divisions is 1280, between 1024 and 2048.
TEST(RoundLayer, RoundsToDivisionsOfPowersOfTwo) {
  EXPECT_EQ(rounded({{"divisions", "4"}}, 1200), 1280u);
  EXPECT_EQ(rounded({{"divisions", "4"}}, 1280), 1280u);
  EXPECT_EQ(rounded({{"divisions", "4"}}, 1793), 2048u);
  EXPECT_EQ(rounded({{"divisions", "1"}}, 1025), 2048u);
  EXPECT_EQ(rounded({{"divisions", "1"}}, 1024), 1024u);
  EXPECT_EQ(rounded({{"divisions", "16"}}, 5), 5u) << "finer than a byte";
}

TEST(RoundLayer, RoundsToDivisionsFirstAndThenToTheMultiple) {
  EXPECT_EQ(rounded({{"divisions", "4"}, {"multiple", "512"}}, 1200), 1536u);
}

TEST(RoundLayer, LeavesSmallRequestsAlone) {
  EXPECT_EQ(rounded({{"multiple", "1MiB"}, {"min_size", "1MiB"}}, 1000), 1000u);
  EXPECT_EQ(rounded({{"multiple", "1MiB"}, {"min_size", "1MiB"}}, MiB + 1), 2 * MiB);
}

TEST(RoundLayer, LeavesToThePolicyWhatCannotBeRounded) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(rounded({{"multiple", "2MiB"}, {"divisions", "2"}}, kMost - 100), kMost - 100);
}

TEST(RoundLayer, RefusesDivisionsThatAreNoPowerOfTwo) {
  AddressOnlySource source;
  EXPECT_THROW(make_stack(source, {{"round", {{"divisions", "3"}}}}), ConfigError);
  EXPECT_THROW(make_stack(source, {{"round", {{"divisions", "-2"}}}}), ConfigError);
}

}  // namespace
}  // namespace tenon
