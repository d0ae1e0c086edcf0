// Into a tensor that is given: which dtypes it may have, what it becomes, and that no gradient flows there.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/ops/out.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

TEST(OutRules, ADtypeIsTheResultsOrOneThatItCanBeCastTo) {
  const Tensor x = tensor({0.25f, 2.5f}), bytes = tensor({200, 100}).to(kUInt8);
  Tensor wide = empty({2}, kFloat64), single = empty({2}), whole = empty({2}, kInt64), truth = empty({2}, kBool),
         byte = empty({2}, kUInt8);
  EXPECT_TRUE(sin_out(wide, x).equal(x.sin().to(kFloat64)));
  EXPECT_EQ(message_of([&] { sin_out(whole, x); }),
            "result type Float can't be cast to the desired output type Long (in operator sin)");
  EXPECT_TRUE(floor_out(single, x).equal(tensor({0.f, 2.f})));
  EXPECT_EQ(message_of([&] { floor_out(wide, x); }),
            "Expected out tensor to have dtype float, but got double instead (in operator floor)");
  EXPECT_TRUE(eq_out(truth, x, x).equal(tensor({true, true})));
  EXPECT_TRUE(eq_out(whole, x, x).equal(tensor({1, 1})));
  EXPECT_TRUE(any_out(byte, tensor({{0, 1}, {0, 0}}), 1).equal(tensor({1, 0}).to(kUInt8)));
  EXPECT_EQ(message_of([&] {
              any_out(whole, tensor({{0, 1}, {0, 0}}), 1);
            }),
            "any only supports bool tensor for result, got: Long");
  Tensor sum = empty({}, kInt64), small = empty({}, kUInt8), real = empty({}, kFloat64), half = empty({}, kFloat16);
  EXPECT_EQ(sum_out(sum, bytes).item<std::int64_t>(), 300);
  EXPECT_EQ(sum_out(small, bytes).item<std::int64_t>(), 44) << "in the dtype of the result";
  EXPECT_EQ(sum_out(real, x).item<double>(), 2.75);
  EXPECT_EQ(mean_out(half, x).item<double>(), 1.375);
  EXPECT_EQ(message_of([&] { mean_out(sum, x); }),
            "result type Float can't be cast to the desired output type Long (in operator mean)");
  EXPECT_EQ(message_of([&] { sum_out(small, bytes, kInt64); }),
            "Expected out tensor to have dtype long int, but got unsigned char instead (in operator sum)");
  EXPECT_EQ(sum_out(real, bytes, kFloat64).item<double>(), 300);
}

TEST(OutRules, NoGradientFlowsWhereAFunctionHasOne) {
  const Tensor x = tensor({1.f, 2.f}).requires_grad_(), y = tensor({1.f, 2.f});
  Tensor out = empty({2}), truth = empty({2}, kBool), wants = tensor({1.f, 2.f}).requires_grad_(), sum = empty({});
  const auto text = [](const char* op) {
    return std::string(op) +
           "(): functions with out=... arguments don't support automatic differentiation, but one of "
           "the arguments requires grad.";
  };
  EXPECT_EQ(message_of([&] { exp_out(out, x); }), text("exp"));
  EXPECT_EQ(message_of([&] { exp_out(wants, y); }), text("exp"));
  EXPECT_EQ(message_of([&] { sum_out(sum, x); }), text("sum"));
  EXPECT_EQ(message_of([&] {
              Tensor w = wants.sum();
              sum_out(w, y);
            }),
            text("sum"));
  EXPECT_EQ(message_of([&] { cumsum_out(out, x, 0); }), text("cumsum"));
  EXPECT_TRUE(gt_out(truth, x, 1).equal(tensor({false, true}))) << "truth has none";
  EXPECT_TRUE(isnan_out(truth, x).equal(tensor({false, false})));
  EXPECT_FALSE(exp_out(out, y).requires_grad());
  NoGradGuard no_grad;
  EXPECT_NO_THROW(exp_out(out, x));
}

TEST(OutRules, ATensorOfOtherSizesIsResizedAsTheResultLies) {
  const Tensor x = arange(6.).view({2, 3});
  Tensor out = empty({0});
  const std::int64_t before = out._version();
  EXPECT_TRUE(exp_out(out, x.t()).equal(x.t().exp()));
  EXPECT_EQ(out.strides().vec(), (std::vector<std::int64_t>{1, 3}));
  EXPECT_GT(out._version(), before);
  Tensor laid = empty({2, 3}).t().contiguous().t();
  const std::vector<std::int64_t> strides = laid.strides().vec();
  exp_out(laid, x);
  EXPECT_EQ(laid.strides().vec(), strides) << "of the same sizes it stays as it lies";
  EXPECT_TRUE(laid.equal(x.exp()));
  Tensor part = zeros({4, 3});
  Tensor rows = part.narrow(0, 1, 2);
  exp_out(rows, x);
  EXPECT_TRUE(part.narrow(0, 1, 2).equal(x.exp()));
  EXPECT_EQ(part[0].sum().item<float>(), 0);
  Tensor expanded = zeros({1, 3}).expand({2, 3});
  EXPECT_THROW(exp_out(expanded, x), Error);
  Tensor away = empty({2, 3}, TensorOptions(Device("simulated:0")));
  EXPECT_THAT(message_of([&] { exp_out(away, x); }), testing::HasSubstr("(in operator exp)"));
}

}  // namespace
}  // namespace tenon::test
