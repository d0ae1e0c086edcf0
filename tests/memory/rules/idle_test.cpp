// What a failed request is told of blocks that nobody uses any more, and whose blocks are at the peak once their owners
// are named.
#include <tenon/core/scope/scope.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/watch/attribution.h>

#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::memory {
namespace {

using scopes::Kind;
using scopes::Phase;
using scopes::Scope;

/// A stack with its attribution, and what a step does to them.
struct Attributed {
  void operators(std::uint64_t count, const char* name = "other") {
    for (std::uint64_t i = 0; i < count; ++i) const Scope one(Kind::kOperator, name);
  }
  /// Within an operator of that name.
  Block make(std::size_t bytes, Purpose purpose = Purpose::kActivation, const char* name = "make") {
    const Scope one(Kind::kOperator, name);
    blocks.push_back(stack->allocate({.bytes = bytes, .purpose = purpose}));
    return blocks.back();
  }
  void use(const Block& block) {
    const Scope one(Kind::kOperator, "use");
    attribution.used(block.data);
  }
  void free_all() {
    for (const Block& block : blocks) stack->deallocate(block);
    blocks.clear();
  }
  std::vector<IdleBytes> idle(const KeptBlocks& kept = {}) const {
    return attribution.report_at_failure({}, 1, {}, &kept).idle;
  }
  AddressOnlySource source;
  std::shared_ptr<AllocatorStack> stack = test::make_stack(source);
  Attribution attribution{*stack, stack->stats()};
  std::vector<Block> blocks;
};

TEST(IdleBlocks, OfAFirstStepAreThoseThatWereNotUsedForAQuarterOfIt) {
  for (const std::uint64_t ago : {15, 16, 17, 40})
    for (const std::uint64_t before : {std::uint64_t{0}, 3 * ago - 2, 3 * ago - 1, 3 * ago, std::uint64_t{190}}) {
      Attributed one;
      scopes::tell_marked("step 1");
      one.operators(before);
      one.make(100);
      one.operators(ago);
      const std::uint64_t step = before + 1 + ago;
      EXPECT_EQ(one.idle().size(), ago >= 16 && 4 * ago >= step ? 1u : 0u) << ago << " of " << step;
      EXPECT_EQ(one.attribution.report_at_failure({}, 1).step_operators, step);
      for (const IdleBytes& row : one.idle()) {
        EXPECT_FALSE(row.is_known);
        EXPECT_EQ(row.operators_ago, ago);
        EXPECT_EQ(row.last_use, "make");
      }
      one.free_all();
    }
}

TEST(IdleBlocks, AreActivationsAndOthersThatNoBackwardMadeInThisStep) {
  for (int number = 0; number < kPurposeCount; ++number)
    for (const bool is_of_backward : {false, true})
      for (const bool is_of_this_step : {false, true}) {
        const auto purpose = static_cast<Purpose>(number);
        Attributed one;
        scopes::tell_marked("step 1");
        {
          Scope backward;
          if (is_of_backward) backward.enter({.kind = Kind::kBackward, .name = "MulBackward0"}, "");
          one.make(100, purpose);
        }
        if (!is_of_this_step) scopes::tell_marked("step 2");
        one.operators(30);
        const bool is_idle =
            (purpose == Purpose::kActivation || purpose == Purpose::kOther) && !is_of_backward && is_of_this_step;
        EXPECT_EQ(one.idle().size(), is_idle ? 1u : 0u)
            << name_of(purpose) << ", backward " << is_of_backward << ", this step " << is_of_this_step;
        one.free_all();
      }
}

TEST(IdleBlocks, OfOnePlaceAndLastUseAreOneRowWithTheShortestTimeAndTheLargestRowIsFirst) {
  Attributed one;
  scopes::tell_marked("step 1");
  one.make(100);
  one.make(100);
  one.make(300, Purpose::kActivation, "larger");
  const Block used = one.make(1000, Purpose::kActivation, "used");
  one.make(50, Purpose::kActivation, "kept");
  const KeptBlocks kept{one.blocks.back().data};
  one.use(used);
  one.operators(20);
  const std::vector<IdleBytes> idle = one.idle(kept);
  ASSERT_EQ(idle.size(), 3u);
  EXPECT_EQ(idle[0].whose.bytes, 1000u);
  EXPECT_EQ(idle[0].last_use, "use");
  EXPECT_EQ(idle[0].operators_ago, 20u);
  EXPECT_EQ(idle[1].whose.bytes, 300u);
  EXPECT_EQ(idle[1].operators_ago, 23u);
  EXPECT_EQ(idle[2].whose.bytes, 200u);
  EXPECT_EQ(idle[2].whose.blocks, 2u);
  EXPECT_EQ(idle[2].operators_ago, 24u) << "of the one that was made later";
  EXPECT_EQ(idle[2].whose.operator_name, "make");
  EXPECT_EQ(idle[2].whose.site, "");
  const AttributionReport sited = one.attribution.report_at_failure(
      {}, 1, [](const void*) { return std::string("somewhere"); }, &kept);
  ASSERT_EQ(sited.idle.size(), 3u);
  for (const IdleBytes& row : sited.idle) EXPECT_EQ(row.whose.site, "somewhere");
  one.free_all();
}

TEST(IdleBlocks, AreKnownWhereTheStepBeforeHadEachOfThem) {
  for (const bool had_both : {false, true}) {
    Attributed one;
    scopes::tell_marked("step 1");
    one.make(100);
    if (had_both) one.make(100);
    one.free_all();
    scopes::tell_marked("step 2");
    one.make(100);
    one.make(100);
    one.operators(30);
    const std::vector<IdleBytes> idle = one.idle();
    ASSERT_EQ(idle.size(), 1u);
    EXPECT_EQ(idle[0].whose.blocks, 2u);
    EXPECT_EQ(idle[0].is_known, had_both) << "of all that is in the row";
    one.free_all();
  }
}

TEST(IdleBlocks, AreNotIdleWhileTheyHaveFewerUsesThanInTheStepBefore) {
  for (int before = 0; before < 3; ++before)
    for (int now = 0; now < 3; ++now) {
      Attributed one;
      const auto step = [&](int uses) {
        scopes::tell_marked("a step");
        const Block block = one.make(100);
        for (int i = 0; i < uses; ++i) one.use(block);
        one.operators(20);
      };
      step(before);
      one.free_all();
      step(now);
      EXPECT_EQ(one.idle().size(), now >= before ? 1u : 0u) << before << ", " << now;
      one.attribution.used(&one);  // of nobody
      one.free_all();
    }
}

TEST(UsesOfOldBlocks, DoNotCountAsUsesOfThisStep) {
  Attributed one;
  scopes::tell_marked("step 1");
  const Block old = one.make(100);
  one.use(old);
  one.use(old);
  scopes::tell_marked("step 2");
  one.use(old);
  const Block fresh = one.make(100);
  one.use(fresh);
  one.operators(30);
  EXPECT_TRUE(one.idle().empty()) << "one more use of the new one is to come";
  one.use(fresh);
  one.operators(30);
  EXPECT_EQ(one.idle().size(), 1u);
  one.free_all();
}

// ---- owners at the peak

std::map<std::string, std::size_t> modules_of(const std::vector<AttributedBytes>& rows) {
  std::map<std::string, std::size_t> bytes;
  for (const AttributedBytes& row : rows) bytes[row.module] += row.bytes;
  return bytes;
}

using Modules = std::map<std::string, std::size_t>;

TEST(Owners, OfABlockThatIsNamedLaterAreTheOwnersAtThePeakTooWhereItWasThere) {
  for (const bool is_there_at_the_peak : {false, true}) {
    Attributed one;
    Block mine;
    if (is_there_at_the_peak) mine = one.make(100);
    one.stack->deallocate(one.stack->allocate({.bytes = 5000}));
    if (!is_there_at_the_peak) mine = one.make(100);
    one.attribution.own(mine.data, {.root = "", .path = "mine"});
    const AttributionReport report = one.attribution.report();
    EXPECT_EQ(modules_of(report.live), (Modules{{"mine", 100}}));
    EXPECT_EQ(modules_of(report.peak),
              is_there_at_the_peak ? (Modules{{"", 5000}, {"mine", 100}}) : (Modules{{"", 5000}}));
    // It goes, and the next peak has it no more.
    one.free_all();
    one.make(9000);
    EXPECT_EQ(modules_of(one.attribution.report().peak), (Modules{{"", 9000}}));
    one.free_all();
    EXPECT_TRUE(one.attribution.report().live.empty());
  }
}

TEST(Owners, AreTheLastThatWereNamedAndOfNobodyElse) {
  Attributed one;
  const Block first = one.make(100, Purpose::kParameter), second = one.make(200, Purpose::kParameter),
              third = one.make(400, Purpose::kData);
  one.attribution.own(first.data, {.root = "", .path = "a"});
  one.attribution.own(first.data, {.root = "", .path = "b"});
  one.attribution.own(third.data, {.root = "", .path = "c"});
  one.attribution.own(third.data, {.root = "", .path = "d"});
  one.attribution.own(&one, {.root = "", .path = "nobody"});
  EXPECT_EQ(modules_of(one.attribution.report().live), (Modules{{"", 200}, {"b", 100}, {"d", 400}}));
  for (const AttributedBytes& row : one.attribution.report().live) EXPECT_EQ(row.blocks, 1u);
  static_cast<void>(second);
  one.free_all();
}

TEST(Owners, OfBlocksFromBeforeTakeTheirBytesFromThoseOfTheirPurpose) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  const Block old = stack->allocate({.bytes = 300, .purpose = Purpose::kParameter});
  Attribution attribution(*stack, stack->stats());
  attribution.own(old.data, {.root = "", .path = "part"}, 299, Purpose::kParameter);
  EXPECT_EQ(modules_of(attribution.report().live), (Modules{{"", 1}, {"part", 299}}));
  EXPECT_EQ(modules_of(attribution.report().peak), (Modules{{"", 1}, {"part", 299}}));
  EXPECT_EQ(attribution.report().live_bytes, 300u);
  stack->deallocate(old);
  EXPECT_EQ(modules_of(attribution.report().live), (Modules{{"", 1}})) << "as it was told";
}

}  // namespace
}  // namespace tenon::memory
