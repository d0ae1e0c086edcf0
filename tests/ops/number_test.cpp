// Numbers beside tensors: converted to the tensor's dtype as PyTorch converts them, or refused.
#include "../support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon {
namespace {

using test::expect_error;

TEST(Number, AnyButZeroIsTrue) {
  const Tensor yes = tensor({true});
  for (const double value : {0.5, 1e-30, 1e30, -2.0, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    EXPECT_TRUE(full({1}, value, kBool).equal(yes)) << value;
    EXPECT_TRUE(zeros({1}, kBool).fill_(value).equal(yes)) << value;
    EXPECT_TRUE(full_like(zeros({1}, kBool), value).equal(yes)) << value;
    EXPECT_TRUE(zeros({1}, kBool).masked_fill(yes, value).equal(yes)) << value;
  }
  EXPECT_TRUE(zeros({2}, kBool).scatter(0, tensor({1}), 0.5).equal(tensor({false, true})));
  EXPECT_TRUE(full({1}, 0.0, kBool).equal(tensor({false})));
}

TEST(Number, WrapsAsOperandOfAnIntegerTensor) {
  const Tensor bytes = tensor({7, 8}, kUInt8);
  EXPECT_TRUE(bytes.floor_divide(-3).equal(tensor({0, 0}, kUInt8)));
  EXPECT_TRUE((bytes % -3).equal(bytes));
  EXPECT_TRUE(bytes.fmod(-3).equal(bytes));
  EXPECT_TRUE((bytes < -3).equal(tensor({true, true})));
  EXPECT_TRUE((bytes == 263).equal(tensor({true, false})));
  EXPECT_TRUE(bytes.bitwise_and(300).equal(tensor({4, 8}, kUInt8)));
  EXPECT_TRUE((tensor({100, -100}, kInt8) < 200).equal(tensor({false, true})));
  Tensor written = bytes.clone();
  written.remainder_(-3);
  EXPECT_TRUE(written.equal(bytes));
}

// Of PyTorch 2.15 on the CPU: 3.7 has the float32 digits as a factor or divisor on the right, number or tensor without
// dims; on the left, and as the divisor of a remainder, it is rounded to 3.703125.
TEST(Number, KeepsItsDigitsAsAFactorOrDivisorBeside16Bits) {
  const Tensor x = full({2}, -3.703125, kBFloat16), number = tensor(3.7);
  const auto first = [](const Tensor& result) { return result[0].item<double>(); };
  EXPECT_EQ(first(x.floor_divide(3.7)), -2);
  EXPECT_EQ(first(x.div(3.7, "floor")), -2);
  EXPECT_EQ(first(x.floor_divide(number)), -2);
  EXPECT_EQ(first(x.clone().floor_divide_(number)), -2);
  EXPECT_EQ(first(x.div(number, "trunc")), -1);
  EXPECT_EQ(first(x.remainder(3.7)), 0);
  EXPECT_EQ(first(x.remainder(number)), 0);
  EXPECT_EQ(first(x.floor_divide(tensor({3.7}))), -2) << "of float32: nothing is rounded";
  const Tensor whole = arange(1, 200, kBFloat16);
  const auto sum = [](const Tensor& result) { return result.to(kFloat32).sum().item<double>(); };
  EXPECT_FLOAT_EQ(sum(whole * 3.7), 73625.796875);
  EXPECT_FLOAT_EQ(sum(whole * number), 73625.796875);
  EXPECT_FLOAT_EQ(sum(whole * tensor(3.7, kFloat64)), 73625.796875);
  EXPECT_FLOAT_EQ(sum(number * whole), 73689.546875);
  EXPECT_FLOAT_EQ(sum(whole / number), 5378.72265625);
  EXPECT_FLOAT_EQ(sum(whole.div(number, "trunc")), 5281);
  EXPECT_FLOAT_EQ(sum(whole.div(number, "floor")), 5276);
  Tensor written = whole.clone();
  written *= number;
  EXPECT_FLOAT_EQ(sum(written), 73625.796875);
  EXPECT_FLOAT_EQ(sum(mul_out(written, whole, number)), 73625.796875);
  Tensor leaf = whole.clone().requires_grad_(), factor = tensor(3.7).requires_grad_();
  (leaf * factor).sum().backward();
  EXPECT_EQ(first(leaf.grad()), 3.703125);
  EXPECT_EQ(factor.grad().scalar_type(), kFloat32);
  EXPECT_EQ(factor.grad().item<double>(), 19840) << "19900 in 16 bits";
}

// PyTorch checks what it multiplies by: alpha of a sum, -alpha of a difference.
TEST(Number, AlphaOfADifferenceMayBeAsLargeAsItsNegativeFits) {
  const Tensor x = tensor({1, 2}, kInt32);
  EXPECT_TRUE(x.sub(x, 2147483648).equal(tensor({-2147483647, 2}, kInt32)));
  EXPECT_TRUE(x.clone().sub_(x, 2147483648).equal(tensor({-2147483647, 2}, kInt32)));
  EXPECT_TRUE(x.add(x, -2147483648).equal(tensor({-2147483647, 2}, kInt32)));
  expect_error([&] { x.sub(x, -2147483648); }, "value cannot be converted to type int without overflow");
  expect_error([&] { x.add(x, 2147483648); }, "value cannot be converted to type int without overflow");
  const Tensor bytes = tensor({1, 2}, kUInt8);
  EXPECT_TRUE(bytes.sub(bytes, 255).equal(tensor({2, 4}, kUInt8)));
  expect_error([&] { bytes.sub(bytes, 256); }, "value cannot be converted to type uint8_t without overflow");
}

TEST(Number, TrueKeepsBools) {
  const Tensor mask = tensor({true, false});
  EXPECT_EQ((mask + true).scalar_type(), kBool);
  EXPECT_TRUE((mask + true).equal(tensor({true, true})));
  Tensor written = mask.clone();
  written += true;
  EXPECT_TRUE(written.equal(tensor({true, true})));
  EXPECT_EQ((mask + 1).scalar_type(), kInt64);
}

TEST(Number, ThatDoesNotFitIsRefused) {
  constexpr const char* kByte = "value cannot be converted to type uint8_t without overflow";
  expect_error([] { full({2}, 300, kUInt8); }, kByte);
  expect_error([] { zeros({2}, kUInt8).fill_(300); }, kByte);
  expect_error([] { zeros({2}, kUInt8).fill_(-1.5); }, kByte);
  expect_error([] { zeros({2}, kUInt8).fill_(NAN); }, kByte);
  expect_error([] { zeros({2}, kUInt8).fill_(-256); }, kByte);
  EXPECT_TRUE(zeros({1}, kUInt8).fill_(-3).equal(tensor({253}, kUInt8))) << "wraps, as in PyTorch";
  expect_error([] { tensor({300}, kUInt8); }, kByte);
  expect_error([] { zeros({2}, kUInt8).masked_fill(tensor({true, false}), 300); }, kByte);
  expect_error([] { zeros({2}, kUInt8).index_put_({0}, 300); }, kByte);
  expect_error([] { full({2}, 1e20, kInt64); }, "value cannot be converted to type int64_t without overflow");
  expect_error([] { full({2}, 9223372036854775808.0, kInt64); }, "int64_t without overflow");
  expect_error([] { full({2}, 1e40); }, "value cannot be converted to type float without overflow");
  expect_error([] { full({2}, 70000, kFloat16); }, "value cannot be converted to type at::Half without overflow");
  expect_error([] { ones({2}, kInt8).add(ones({2}, kInt8), 300); }, "type int8_t without overflow");
  EXPECT_TRUE(std::isinf(full({1}, INFINITY).item<float>()));
}

TEST(Number, BoolsAreNotSubtractedNorNegated) {
  const Tensor mask = tensor({true, false});
  expect_error([&] { mask - mask; }, "Subtraction, the `-` operator, with two bool tensors is not supported.");
  expect_error([&] { mask - true; }, "Subtraction, the `-` operator, with two bool tensors is not supported.");
  expect_error([&] { mask - 1; }, "Subtraction, the `-` operator, with a bool tensor is not supported.");
  expect_error([&] { 1 - mask; }, "Subtraction, the `-` operator, with a bool tensor is not supported.");
  expect_error([&] { ones({2}) - mask; }, "Subtraction, the `-` operator, with a bool tensor is not supported.");
  expect_error([&] { ones({2}).sub_(mask); }, "Subtraction, the `-` operator, with a bool tensor is not supported.");
  expect_error([&] { -mask; }, "Negation, the `-` operator, on a bool tensor is not supported.");
  expect_error([&] { relu(mask); }, "Boolean inputs not supported for relu");
  expect_error([] { ones({2}).add(ones({2}), true); }, "Boolean alpha only supported for Boolean results.");
}

TEST(Number, IntegersHaveNoNegativePowers) {
  constexpr const char* kText = "Integers to negative integer powers are not allowed.";
  expect_error([] { tensor({2}, kUInt8).pow(-3); }, kText);
  expect_error([] { tensor({2}, kUInt8).pow_(-3); }, kText);
  expect_error([] { tensor({true}).pow(-3); }, kText);
}

TEST(Number, BoundsThatNoIntegerCanPassAreNone) {
  const Tensor bytes = tensor({5, 0, 6}, kUInt8);
  EXPECT_TRUE(bytes.clamp(-3).equal(bytes));
  EXPECT_TRUE(bytes.clamp(-3, 4).equal(tensor({4, 0, 4}, kUInt8)));
  EXPECT_TRUE(bytes.clamp(0, 300).equal(bytes));
  EXPECT_TRUE(bytes.clamp_min(-3).equal(bytes));
  EXPECT_TRUE(clip(bytes, -3).equal(bytes));
  EXPECT_TRUE(bytes.clone().clamp_(-3).equal(bytes));
  EXPECT_TRUE(bytes.clone().clamp_max_(1000).equal(bytes));
  EXPECT_TRUE(bytes.to(kInt8).clamp_max(300).equal(bytes.to(kInt8)));
  EXPECT_TRUE(hardtanh(bytes, -3, 4).equal(tensor({4, 0, 4}, kUInt8)));
  EXPECT_EQ(bytes.clamp(-3, 2.5).scalar_type(), kFloat32);
  expect_error([&] { bytes.clamp_min(300); }, "Clamp min value 300 is outside the representable range of Byte");
  expect_error([&] { bytes.clamp(-1, -2); }, "Clamp max value -2 is outside the representable range of Byte");
  expect_error([&] { bytes.to(kInt8).clamp_(-1000, -500); },
               "Clamp max value -500 is outside the representable range of Char");
  expect_error([] { ones({2}, kFloat16).clamp_max(1e6); }, "at::Half without overflow");
  expect_error<NotImplementedError>([] { tensor({true}).clamp_min(false); },
                                    "\"clamp_min_scalar_cpu\" not implemented for 'Bool'");
}

TEST(Number, ClampInPlaceKeepsTheDtypeOrRefuses) {
  expect_error(
      [] {
        tensor({1, 5}).clamp_(0.5, 2.5);
      },
      "result type Float can't be cast to the desired output type Long");
  expect_error(
      [] {
        tensor({1, 5}).clamp_min_(0.5);
      },
      "result type Float can't be cast to the desired output type Long");
  EXPECT_EQ(tensor({1, 5}).clamp(0.5, 2.5).scalar_type(), kFloat32);
  EXPECT_TRUE(ones({2}).clamp(NAN, 2).isnan().all().item<bool>()) << "no bound, no number: as in PyTorch";
  EXPECT_TRUE(ones({2}).clamp_max_(NAN).isnan().all().item<bool>());
}

TEST(Number, EqualComparesValuesOfDifferentDtypes) {
  EXPECT_TRUE(equal(ones({2}), ones({2}, kFloat64)));
  EXPECT_FALSE(equal(ones({2}), zeros({2}, kInt64)));
}

TEST(Write, IndexPutMatchesDtypes) {
  const Tensor at = tensor({0, 1});
  expect_error(
      [&] { zeros({3}).index_put_({at}, ones({2}, kFloat64)); },
      "Index put requires the source and destination dtypes match, got Float for the destination and Double for "
      "the source.");
  Tensor x = zeros({2});
  x.index_put_({tensor({true, false})}, tensor(3));
  EXPECT_TRUE(x.equal(tensor({3.0, 0.0}))) << "one value under a mask is a fill";
}

TEST(Write, IndexAddChecksItsRowsOrBroadcastsThem) {
  const Tensor x = zeros({3, 4});
  const Tensor at = tensor({0, 1});
  expect_error(
      [&] {
        x.index_add(0, at, ones({2, 3}));
      },
      "The size of tensor a (4) must match the size of tensor b (3)");
  expect_error(
      [&] {
        x.index_add(0, at, ones({2, 5}));
      },
      "The size of tensor a (4) must match the size of tensor b (5)");
  expect_error(
      [&] {
        x.index_add(1, at, ones({5, 2}));
      },
      "The size of tensor a (3) must match the size of tensor b (5)");
  expect_error(
      [&] {
        x.index_add(0, at, ones({2, 4, 1}));
      },
      "output with shape [4] doesn't match the broadcast shape [4, 4]");
  expect_error(
      [&] {
        x.index_add(0, at, ones({3, 4}));
      },
      "index_add_(): Number of indices (2) should be equal to source.size(dim): (3), for dim: 0");
  expect_error(
      [&] {
        x.index_add(0, at, ones({2, 4}, kInt64));
      },
      "index_add_(): self (Float) and source (Long) must have the same scalar type");
  expect_error<IndexError>([&] { x.index_add(0, tensor({0}), tensor(2.0f)); },
                           "select() cannot be applied to a 0-dim tensor.");
  EXPECT_TRUE(x.index_add(0, at, tensor({{1.0}, {2.0}}))
                  .equal(tensor({{1.0, 1.0, 1.0, 1.0}, {2.0, 2.0, 2.0, 2.0}, {0.0, 0.0, 0.0, 0.0}})));
  EXPECT_TRUE(zeros({2, 3}).index_add(1, at, tensor({{1.0, 2.0}})).equal(tensor({{1.0, 2.0, 0.0}, {1.0, 2.0, 0.0}})));
  EXPECT_TRUE(zeros({3}).index_add(0, tensor({1}), tensor(2.0f)).equal(tensor({0.0, 2.0, 0.0})));
}

TEST(Write, IndexAddSumsTheGradientOfBroadcastRows) {
  const Tensor rows = tensor({{1.0}, {2.0}}).set_requires_grad(true);
  (zeros({3, 4}).index_add(0, tensor({0, 2}), rows) * arange(12, kFloat32).reshape({3, 4})).sum().backward();
  EXPECT_TRUE(rows.grad().equal(tensor({{6.0}, {38.0}})));
  const Tensor columns = tensor({{1.0, 2.0}}).set_requires_grad(true);
  (zeros({2, 3}).index_add(1, tensor({0, 2}), columns) * arange(6, kFloat32).reshape({2, 3})).sum().backward();
  EXPECT_TRUE(columns.grad().equal(tensor({{3.0, 7.0}})));
}

TEST(Write, IndexCopyChecksShapesAndRange) {
  const Tensor x = zeros({3, 4});
  const Tensor at = tensor({0, 1});
  expect_error(
      [&] {
        x.index_copy_(0, at, ones({2, 3}));
      },
      "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: 4 at "
      "dimension 0 and source slice shape: 3 at dimension 0.");
  expect_error<IndexError>(
      [&] {
        x.index_copy_(0, at, ones({1, 4}));
      },
      "index_copy_(): Number of indices (2) should be equal to source.size(dim) (1)");
  expect_error<IndexError>(
      [&] {
        x.index_copy_(0, tensor({-1}), ones({1, 4}));
      },
      "index_copy_(): index -1 is out of bounds for dimension 0 with size 3");
  expect_error<IndexError>(
      [&] {
        x.index_copy_(0, tensor({5}), ones({1, 4}));
      },
      "index_copy_(): index 5 is out of bounds for dimension 0 with size 3");
  x.index_copy_(0, tensor({2}), ones({1, 4}));
  EXPECT_EQ(x.sum().item<float>(), 4);
}

}  // namespace
}  // namespace tenon
