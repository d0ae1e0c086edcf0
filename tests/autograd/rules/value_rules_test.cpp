// Values beside tensors, modes and autocast's state: each kind beside each other one.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/refusal.h"

namespace tenon {
namespace {

using namespace autograd;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// --- IValue ---------------------------------------------------------------------------------------------------------

TEST(IValueRules, EachKindIsItselfAloneAndIsGivenAsItselfAlone) {
  const std::vector<std::pair<std::string, IValue>> values = {
      {"None", IValue()},
      {"Tensor", IValue(ones({2}))},
      {"Bool", IValue(true)},
      {"Int", IValue(std::int64_t{7})},
      {"Double", IValue(2.5)},
      {"String", IValue("text")},
      {"TensorList", IValue(std::vector<Tensor>{ones({1}), ones({3})})},
      {"IntList", IValue(std::vector<std::int64_t>{4, 5})}};
  const std::vector<std::pair<std::string, std::function<bool(const IValue&)>>> questions = {
      {"None", [](const IValue& v) { return v.isNone(); }},
      {"Tensor", [](const IValue& v) { return v.isTensor(); }},
      {"Bool", [](const IValue& v) { return v.isBool(); }},
      {"Int", [](const IValue& v) { return v.isInt(); }},
      {"Double", [](const IValue& v) { return v.isDouble(); }},
      {"String", [](const IValue& v) { return v.isString(); }},
      {"TensorList", [](const IValue& v) { return v.isTensorList(); }},
      {"IntList", [](const IValue& v) { return v.isIntList(); }}};
  const std::vector<std::pair<std::string, std::function<void(const IValue&)>>> getters = {
      {"Tensor", [](const IValue& v) { EXPECT_TRUE(v.toTensor().equal(ones({2}))); }},
      {"Bool", [](const IValue& v) { EXPECT_TRUE(v.toBool()); }},
      {"Int", [](const IValue& v) { EXPECT_EQ(v.toInt(), 7); }},
      {"Double", [](const IValue& v) { EXPECT_EQ(v.toDouble(), 2.5); }},
      {"String", [](const IValue& v) { EXPECT_EQ(v.toStringRef(), "text"); }},
      {"TensorList", [](const IValue& v) { EXPECT_EQ(v.toTensorVector()[1].numel(), 3); }},
      {"IntList", [](const IValue& v) { EXPECT_THAT(v.toIntVector(), ElementsAre(4, 5)); }}};
  for (const auto& [kind, value] : values) {
    for (const auto& [asked, is] : questions) EXPECT_EQ(is(value), kind == asked) << kind << " asked for " << asked;
    for (const auto& [wanted, get] : getters) {
      EXPECT_EQ(refusal_of([&] { get(value); }), kind == wanted ? "" : "Expected " + wanted + " but got " + kind);
    }
  }
  EXPECT_EQ(IValue(std::int32_t{-3}).toInt(), -3);
  EXPECT_EQ(IValue(std::string("s")).toStringRef(), "s");
  IValue copy = values[3].second, moved = std::move(copy);
  EXPECT_EQ(moved.toInt(), 7);
  moved = values[4].second;
  EXPECT_EQ(moved.toDouble(), 2.5);
}

// --- modes ----------------------------------------------------------------------------------------------------------

TEST(ModeRules, AGuardPutsBackWhatItFoundHoweverModesAreNested) {
  for (const bool before : {true, false}) {
    const AutoGradMode outer(before);
    for (const bool inside : {true, false}) {
      {
        const InferenceMode inference(inside);
        EXPECT_EQ(InferenceMode::is_enabled(), inside);
        EXPECT_EQ(GradMode::is_enabled(), !inside);
        EXPECT_EQ(ones({1}).is_inference(), inside);
        {
          const InferenceMode other(!inside);
          EXPECT_EQ(InferenceMode::is_enabled(), !inside);
          EXPECT_EQ(ones({1}).is_inference(), !inside);
        }
        EXPECT_EQ(InferenceMode::is_enabled(), inside);
        EXPECT_EQ(GradMode::is_enabled(), !inside);
        EXPECT_EQ(ones({1}).is_inference(), inside);
        {
          const AutoGradMode on(true);
          EXPECT_TRUE(GradMode::is_enabled());
        }
        EXPECT_EQ(GradMode::is_enabled(), !inside);
        {
          const NoGradGuard off;
          EXPECT_FALSE(GradMode::is_enabled());
        }
        EXPECT_EQ(GradMode::is_enabled(), !inside);
      }
      EXPECT_FALSE(InferenceMode::is_enabled());
      EXPECT_EQ(GradMode::is_enabled(), before);
      EXPECT_FALSE(ones({1}).is_inference());
    }
  }
}

TEST(ModeRules, StatesOfAThreadGoToAnotherAsAWhole) {
  ThreadState state;
  {
    const NoGradGuard off;
    const DetectAnomalyGuard anomaly(false);
    state = thread_state();
  }
  std::thread([&] {
    set_thread_state(state);
    EXPECT_FALSE(GradMode::is_enabled());
    EXPECT_TRUE(AnomalyMode::is_enabled());
    EXPECT_FALSE(AnomalyMode::should_check_nan());
    EXPECT_FALSE(InferenceMode::is_enabled());
  }).join();
  {
    const InferenceMode inference;
    const AutoGradMode on(true);
    state = thread_state();
    set_thread_state(state);
    EXPECT_FALSE(GradMode::is_enabled()) << "what was answered to who asks is no part of it";
    EXPECT_TRUE(ones({1}).is_inference());
  }
  std::thread([&] {
    set_thread_state(state);
    EXPECT_TRUE(InferenceMode::is_enabled());
    EXPECT_TRUE(ones({1}).is_inference());
  }).join();
}

TEST(ModeRules, AnomalyModesNestAndEachPutsBackBothSwitches) {
  EXPECT_FALSE(AnomalyMode::is_enabled());
  EXPECT_TRUE(AnomalyMode::should_check_nan());
  {
    const DetectAnomalyGuard outer(false);
    EXPECT_TRUE(AnomalyMode::is_enabled());
    EXPECT_FALSE(AnomalyMode::should_check_nan());
    {
      const DetectAnomalyGuard inner;
      EXPECT_TRUE(AnomalyMode::should_check_nan());
    }
    EXPECT_TRUE(AnomalyMode::is_enabled());
    EXPECT_FALSE(AnomalyMode::should_check_nan());
    AnomalyMode::set_enabled(false);
    EXPECT_FALSE(AnomalyMode::is_enabled());
    EXPECT_TRUE(AnomalyMode::should_check_nan());
  }
  EXPECT_FALSE(AnomalyMode::is_enabled());
  EXPECT_TRUE(AnomalyMode::should_check_nan());
}

TEST(ModeRules, NanIsLookedForInAnomalyModeAloneAndWhereItIsAskedFor) {
  const auto refusal = [] {
    const Tensor x = zeros({1}, requires_grad());
    const Tensor y = x / x;
    return refusal_of([&] { y.backward(); });
  };
  EXPECT_EQ(refusal(), "");
  {
    const DetectAnomalyGuard guard(false);
    EXPECT_EQ(refusal(), "");
  }
  const DetectAnomalyGuard guard;
  EXPECT_THAT(refusal(), HasSubstr("Function 'DivBackward0' returned nan values in its 1th output. Forward call:"));
  const Tensor x = ones({1}, requires_grad()), zero = zeros({1}, requires_grad());
  EXPECT_THAT(refusal_of([&] { (x * (zero / zero)).backward(); }), HasSubstr("'MulBackward0' returned nan"));
  EXPECT_EQ(refusal_of([&] { (x / zero).backward(); }), "") << "infinities are numbers";
}

// --- autocast's state -----------------------------------------------------------------------------------------------

TEST(AutocastRules, StateIsOfEachKindOfDeviceAndGuardsPutItBack) {
  using namespace autocast;
  EXPECT_EQ(get_autocast_dtype(kCPU), kBFloat16);
  EXPECT_EQ(get_autocast_dtype(kCUDA), kFloat16);
  {
    const AutocastGuard guard(kCPU, kFloat16, true, false);
    EXPECT_TRUE(is_autocast_enabled(kCPU));
    EXPECT_FALSE(is_autocast_enabled(kCUDA));
    EXPECT_EQ(get_autocast_dtype(kCPU), kFloat16);
    EXPECT_FALSE(is_autocast_cache_enabled());
    {
      const AutocastGuard of_other(kCUDA, kBFloat16);
      EXPECT_TRUE(is_autocast_enabled(kCPU));
      EXPECT_TRUE(is_autocast_enabled(kCUDA));
      EXPECT_EQ(get_autocast_dtype(kCUDA), kBFloat16);
      EXPECT_EQ(get_autocast_dtype(kCPU), kFloat16);
      EXPECT_TRUE(is_autocast_cache_enabled());
      const AutocastGuard off(kCPU, {}, false);
      EXPECT_FALSE(is_autocast_enabled(kCPU));
      EXPECT_EQ(get_autocast_dtype(kCPU), kFloat16);
    }
    EXPECT_TRUE(is_autocast_enabled(kCPU));
    EXPECT_FALSE(is_autocast_enabled(kCUDA));
    EXPECT_EQ(get_autocast_dtype(kCUDA), kFloat16);
    EXPECT_FALSE(is_autocast_cache_enabled());
  }
  EXPECT_FALSE(is_autocast_enabled(kCPU));
  EXPECT_EQ(get_autocast_dtype(kCPU), kBFloat16);
  EXPECT_TRUE(is_autocast_cache_enabled());
  EXPECT_EQ(refusal_of([] { set_autocast_dtype(kCPU, kFloat32); }),
            "autocast on cpu computes in float16 or bfloat16, not in float32");
  EXPECT_EQ(refusal_of([] { set_autocast_dtype(kCPU, kInt64); }),
            "autocast on cpu computes in float16 or bfloat16, not in int64");
  EXPECT_EQ(increment_nesting(), 1);
  EXPECT_EQ(increment_nesting(), 2);
  EXPECT_EQ(decrement_nesting(), 1);
  EXPECT_EQ(decrement_nesting(), 0);
}

TEST(AutocastRules, ListsOfAcceleratorsAreSetByKind) {
  using namespace autocast;
  EXPECT_FALSE(has_accelerator_lists(kCPU));
  EXPECT_TRUE(has_accelerator_lists(kCUDA));
  set_accelerator_lists(kCUDA, false);
  EXPECT_FALSE(has_accelerator_lists(kCUDA));
  EXPECT_FALSE(has_accelerator_lists(kCPU));
  set_accelerator_lists(kCUDA, true);
  set_accelerator_lists(kCPU, true);
  EXPECT_TRUE(has_accelerator_lists(kCUDA));
  EXPECT_TRUE(has_accelerator_lists(kCPU));
  set_accelerator_lists(kCPU, false);
  EXPECT_FALSE(has_accelerator_lists(kCPU));
}

TEST(AutocastRules, WhatMayBeCastIsFloatingAndNotOfDoubleAndOnThatDevice) {
  using namespace autocast;
  for (const Dtype dtype : {kFloat64, kInt64, kBool, kUInt8}) {
    const Tensor x = ones({2}, dtype);
    EXPECT_TRUE(cached_cast(kBFloat16, x, kCPU).is_same(x));
  }
  const Tensor x = ones({2});
  EXPECT_TRUE(cached_cast(kFloat32, x, kCPU).is_same(x));
  EXPECT_TRUE(cached_cast(kBFloat16, x, kCUDA).is_same(x));
  EXPECT_EQ(cached_cast(kBFloat16, x, kCPU).scalar_type(), kBFloat16);
}

TEST(AutocastRules, CastsOfFloatLeavesThatWantAGradientAreKeptUntilTheyAreWrittenTo) {
  using namespace autocast;
  const AutocastGuard guard(kCPU);
  const auto is_kept = [](const Tensor& tensor, Dtype dtype = kBFloat16) {
    return cached_cast(dtype, tensor, kCPU).is_same(cached_cast(dtype, tensor, kCPU));
  };
  const Tensor weight = ones({2}, requires_grad());
  EXPECT_TRUE(is_kept(weight));
  EXPECT_FALSE(is_kept(weight, kFloat16)) << "not autocast's dtype";
  EXPECT_FALSE(is_kept(ones({2})));
  EXPECT_FALSE(is_kept(weight * 2));
  EXPECT_FALSE(is_kept(weight.view({1, 2})));
  EXPECT_FALSE(is_kept(ones({2}, TensorOptions(kFloat16).requires_grad(true))));
  const Tensor other = ones({3}, requires_grad());
  const Tensor first = cached_cast(kBFloat16, weight, kCPU), of_other = cached_cast(kBFloat16, other, kCPU);
  EXPECT_FALSE(first.is_same(of_other));
  EXPECT_TRUE(cached_cast(kBFloat16, weight, kCPU).is_same(first));
  {
    const NoGradGuard off;
    weight.mul_(3);
  }
  const Tensor second = cached_cast(kBFloat16, weight, kCPU);
  EXPECT_FALSE(second.is_same(first));
  EXPECT_TRUE(second.detach().to(kFloat32).equal(full({2}, 3.)));
  EXPECT_TRUE(cached_cast(kBFloat16, other, kCPU).is_same(of_other)) << "and no other one";
  clear_cache();
  EXPECT_FALSE(cached_cast(kBFloat16, weight, kCPU).is_same(second));
  clear_cache();
  Tensor without;
  {
    const NoGradGuard off;
    without = cached_cast(kBFloat16, weight, kCPU);
    EXPECT_TRUE(is_kept(weight));
  }
  const Tensor with = cached_cast(kBFloat16, weight, kCPU);
  EXPECT_FALSE(with.is_same(without)) << "its cast knows no gradient";
  EXPECT_TRUE(with.requires_grad());
  set_autocast_cache_enabled(false);
  EXPECT_FALSE(is_kept(weight));
  set_autocast_cache_enabled(true);
  Tensor in_inner;
  {
    const AutocastGuard inner(kCPU);
    in_inner = cached_cast(kBFloat16, weight, kCPU);
  }
  EXPECT_TRUE(cached_cast(kBFloat16, weight, kCPU).is_same(in_inner)) << "until the outermost ends";
}

TEST(AutocastRules, CastsEndWithTheOutermostGuardAlone) {
  const Tensor weight = ones({2}, requires_grad());
  Tensor first;
  {
    const AutocastGuard guard(kCPU);
    first = autocast::cached_cast(kBFloat16, weight, kCPU);
  }
  const AutocastGuard guard(kCPU);
  EXPECT_FALSE(autocast::cached_cast(kBFloat16, weight, kCPU).is_same(first));
}

}  // namespace
}  // namespace tenon
