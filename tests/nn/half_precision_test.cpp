// Modules in 16 bits: what is converted, what stays, and what batch norm then gives.
#include "support/expect_error.h"

#include <tenon/device/device_state.h>
#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/modules/batch_norm.h>
#include <tenon/nn/modules/conv.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::test {
namespace {

nn::Sequential pictures() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 4, 3)), nn::BatchNorm2d(4),
                        nn::Conv2d(nn::Conv2dOptions(4, 2, 1)), nn::BatchNorm2d(2));
}

TEST(HalfPrecision, LeavesBatchNormInFloat32) {
  nn::Sequential model = pictures();
  nn::to_half_but_batch_norm(*model);
  for (const auto& item : model->named_parameters()) {
    const bool is_norm = item.key().starts_with("1.") || item.key().starts_with("3.");
    EXPECT_EQ(item.value().scalar_type(), is_norm ? kFloat32 : kFloat16) << item.key();
  }
  for (const auto& item : model->named_buffers()) {
    EXPECT_EQ(item.value().scalar_type(), item.key().ends_with("num_batches_tracked") ? kInt64 : kFloat32)
        << item.key();
  }
  const Tensor x = full({2, 3, 8, 8}, 0.5, TensorOptions(kFloat16)).set_requires_grad(true);
  const Tensor y = model->forward(x);
  EXPECT_EQ(y.scalar_type(), kFloat16);
  y.to(kFloat32).square().sum().backward();
  for (const Tensor& parameter : model->parameters()) {
    EXPECT_EQ(parameter.grad().scalar_type(), parameter.scalar_type());
  }
}

TEST(HalfPrecision, HalfConvertsAll) {
  nn::Sequential model = pictures();
  model->half();
  for (const Tensor& parameter : model->parameters()) EXPECT_EQ(parameter.scalar_type(), kFloat16);
  model->bfloat16();
  for (const Tensor& parameter : model->parameters()) EXPECT_EQ(parameter.scalar_type(), kBFloat16);
}

TEST(HalfPrecision, WhatIsConvertedCountsAsParameters) {
  const auto of = [](Purpose purpose) {
    return device_state(kCPU).allocator().stats().requested_by_purpose[static_cast<std::size_t>(purpose)].current;
  };
  const std::int64_t parameters = of(Purpose::kParameter), activations = of(Purpose::kActivation);
  nn::Sequential model = pictures();
  const std::int64_t single = of(Purpose::kParameter) - parameters;
  model->to(kBFloat16);
  EXPECT_EQ(of(Purpose::kActivation), activations);
  EXPECT_LT(of(Purpose::kParameter) - parameters, single / 2 + 64);
}

TEST(HalfPrecision, RefusesOtherDtypes) {
  nn::Sequential model = pictures();
  expect_error([&] { nn::to_half_but_batch_norm(*model, kFloat64); }, "float16 or bfloat16, not to float64");
}

/// Half of what a float32 input would keep: the input itself, in its 16 bits.
TEST(HalfPrecision, NormsOf16BitsSaveTheirInputAsItCame) {
  const Tensor x = full({2, 4, 16, 16}, 0.5, TensorOptions(kBFloat16)).set_requires_grad(true);
  const Tensor weight = ones({4}).set_requires_grad(true), bias = zeros({4}).set_requires_grad(true);
  const auto live = [] { return device_state(kCPU).allocator().stats().requested_bytes.current; };
  const std::int64_t before = live();
  const Tensor y = batch_norm(x, weight, bias, {}, {}, true, 0.1, 1e-5);
  EXPECT_LE(live() - before, static_cast<std::int64_t>(y.nbytes()) + 64) << "the output and statistics, no wide copy";
  EXPECT_EQ(y.scalar_type(), kBFloat16);
  y.sum().backward();
  EXPECT_EQ(x.grad().scalar_type(), kBFloat16);
  EXPECT_EQ(weight.grad().scalar_type(), kFloat32);
}

/// The kernels read 16 bits where they lie: no float32 copy of a picture, forward or backward, however short-lived.
TEST(HalfPrecision, NormsOf16BitsTakeNoRoomForWideCopies) {
  const Tensor x = randn({4, 8, 64, 64}).to(kBFloat16).set_requires_grad(true);
  const Tensor weight = ones({8}).set_requires_grad(true), bias = zeros({8}).set_requires_grad(true);
  const Tensor row_weight = ones({64}).set_requires_grad(true), row_bias = zeros({64}).set_requires_grad(true);
  const Tensor dy = randn({4, 8, 64, 64}).to(kBFloat16);
  const auto picture = static_cast<std::int64_t>(x.nbytes());
  AllocatorStack& allocator = device_state(kCPU).allocator();
  const auto peak_of = [&](const auto& norm) {
    x.mutable_grad() = Tensor();
    allocator.reset_peak_stats();
    const std::int64_t before = allocator.stats().requested_bytes.current;
    norm().backward(dy);
    return allocator.stats().requested_bytes.peak - before;
  };
  // The output and the input's gradient; layer_norm adds up its parameters' gradients by blocks of rows.
  EXPECT_LT(peak_of([&] { return batch_norm(x, weight, bias, {}, {}, true, 0.1, 1e-5); }), picture * 9 / 4);
  EXPECT_LT(peak_of([&] { return group_norm(x, 4, weight, bias, 1e-5); }), picture * 9 / 4);
  EXPECT_LT(peak_of([&] { return layer_norm(x, {64}, row_weight, row_bias, 1e-5); }), picture * 9 / 4);
}

}  // namespace
}  // namespace tenon::test
