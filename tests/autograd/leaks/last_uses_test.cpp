// Last uses: each operand of an operator and each tensor that a node saved counts as used when that begins, and what
// nodes keep is known by its blocks.
#include <tenon/autograd/autograd.h>
#include <tenon/autograd/leaks/last_uses.h>
#include <tenon/device/device_state.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using memory::Attribution;
using memory::KeptBlocks;
using memory::LastUses;
using ::testing::UnorderedElementsAre;

const void* block_of(const Tensor& tensor) { return tensor.impl().storage().block().data; }

class LastUsesOf : public ::testing::Test {
 protected:
  AllocatorStack& stack_ = device_state(Device(kCPU)).allocator();
  Attribution attribution_{stack_, stack_.stats()};
  LastUses uses_{attribution_};

  /// Of what has been idle long enough, by its bytes: where it was used last, and how many operators ago.
  std::map<std::size_t, std::pair<std::string, std::uint64_t>> idle() {
    const KeptBlocks none;
    std::map<std::size_t, std::pair<std::string, std::uint64_t>> idle;
    for (const auto& row : attribution_.report_at_failure({}, 1, {}, &none).idle)
      idle[row.whose.bytes] = {row.last_use, row.operators_ago};
    return idle;
  }
  static void others(int count) {
    const Tensor x = ones({1});
    for (int i = 0; i < count; ++i) x.add_(1);
  }
};

TEST_F(LastUsesOf, AnOperandAreThoseOfTheOperatorsThatTakeItAloneOrInAList) {
  const Tensor a = ones({100}), b = ones({1}), c = ones({200}), d = ones({300}), never = ones({400});
  others(3);
  const Tensor product = a * b;
  cat({c, d});
  a.sum();
  others(40);
  const auto idle = this->idle();
  ASSERT_EQ(idle.count(400) + idle.count(2000) + idle.count(1600), 3U);
  EXPECT_EQ(idle.at(400).first, "sum");
  EXPECT_EQ(idle.at(2000).first, "cat") << "both of the list";
  EXPECT_LT(idle.at(400).second, idle.at(2000).second);
  EXPECT_LT(idle.at(2000).second, idle.at(1600).second);
}

TEST_F(LastUsesOf, WhatANodeSavedIsTheNodesRun) {
  const Tensor x = ones({1}, requires_grad()), w = ones({100});
  const Tensor y = (x * w).sum();
  others(20);
  y.backward();
  others(40);
  const auto idle = this->idle();
  ASSERT_EQ(idle.count(400), 1U);
  EXPECT_THAT(idle.at(400).first, ::testing::HasSubstr("MulBackward0"));
}

TEST_F(LastUsesOf, WhatNodesKeepIsKnownUntilTheyGiveItUp) {
  const Tensor early = ones({2}, requires_grad());
  const Tensor x = ones({4}, requires_grad()), w = ones({4});
  EXPECT_TRUE(uses_.kept_for_backward().empty());
  const Tensor product = x * w, power = product.exp();
  EXPECT_THAT(uses_.kept_for_backward(), UnorderedElementsAre(block_of(w), block_of(power)));
  Tensor packed;
  {
    const autograd::SavedTensorHooksGuard guard(
        {.pack = [](const Tensor& tensor) -> std::any { return tensor.clone(); },
         .unpack = [](const std::any& value) { return std::any_cast<Tensor>(value); }});
    packed = early.exp();
  }
  EXPECT_THAT(uses_.kept_for_backward(), UnorderedElementsAre(block_of(w), block_of(power)))
      << "hooks keep it, no node";
  power.sum().backward();
  EXPECT_TRUE(uses_.kept_for_backward().empty());
}

}  // namespace
}  // namespace tenon
