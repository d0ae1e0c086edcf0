// Operators of one and of two operands: which dtypes they take and give, what is written in place, and what they
// refuse.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
const TensorOptions kDoubles(kFloat64);

/// The gradient that `made` (x) leaves at x, where its elements count 1, 2, 3, ….
template <class F>
Tensor slope_of(const Tensor& at, F made) {
  const Tensor x = at.detach().clone().requires_grad_();
  const Tensor y = made(x);
  y.mul(arange(1, static_cast<double>(y.numel()) + 1, y.options()).view(y.sizes())).sum().backward();
  return x.grad();
}

TEST(UnaryRules, OfIntegersTheResultIsFloatingWhereTheFunctionIs) {
  const Tensor whole = tensor({1, 0, 2}), truth = tensor({true, false});
  EXPECT_EQ(whole.sqrt().scalar_type(), kFloat32);
  EXPECT_TRUE(truth.exp().allclose(tensor({std::exp(1.f), 1.f})));
  EXPECT_EQ(whole.neg().scalar_type(), kInt64);
  EXPECT_EQ(truth.square().scalar_type(), kInt64);
  EXPECT_TRUE(whole.floor().equal(whole));
  EXPECT_FALSE(whole.floor().is_alias_of(whole)) << "a copy";
  EXPECT_EQ(message_of([&] { whole.frac(); }), "\"frac_cpu\" not implemented for 'Long'");
  EXPECT_EQ(message_of([&] { silu(whole); }), "\"silu_cpu\" not implemented for 'Long'");
  EXPECT_EQ(message_of([&] { whole.clone().frac_(); }), "\"frac_cpu\" not implemented for 'Long'");
  EXPECT_TRUE(whole.clone().floor_().equal(whole));
  EXPECT_TRUE(whole.clone().neg_().equal(tensor({-1, 0, -2})));
  EXPECT_EQ(message_of([&] { whole.clone().exp_(); }),
            "result type Float can't be cast to the desired output type Long (in-place operator exp_)");
  EXPECT_EQ(message_of([&] { truth.clone().square_(); }),
            "result type Long can't be cast to the desired output type Bool (in-place operator square_)");
  EXPECT_THROW(zeros({1}).expand({3}).sin_(), Error);
  EXPECT_THROW(zeros({1}, kInt64).expand({3}).floor_(), Error) << "refused even where nothing would change";
}

TEST(UnaryRules, WhatARowDoesNotTakeIsSaid) {
  const Tensor truth = tensor({true, false}), x = tensor({1.f, -1.f});
  const std::string negation =
      "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` "
      "or `logical_not()` operator instead.";
  EXPECT_EQ(message_of([&] { truth.neg(); }), negation);
  EXPECT_EQ(message_of([&] { truth.clone().neg_(); }), negation);
  EXPECT_EQ(message_of([&] { relu(truth); }), "Boolean inputs not supported for relu");
  EXPECT_EQ(message_of([&] { relu6(truth); }), "Bool inputs not supported for hardtanh");
  EXPECT_EQ(message_of([&] { hardtanh(truth); }), "Bool inputs not supported for hardtanh");
  EXPECT_EQ(message_of([&] { celu(x, 0); }), "ZeroDivisionError: alpha cannot be 0 for CELU");
  EXPECT_NO_THROW(celu(x, -1));
  EXPECT_EQ(message_of([&] { softshrink(x, -1); }),
            "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -1");
  EXPECT_EQ(message_of([&] { softshrink(x.to(kFloat16), 65536); }),
            "lambda must be in range [0, 65504] for input dtype Half, but found inf");
  EXPECT_THROW(softshrink(x.to(kBFloat16), std::numeric_limits<double>::infinity()), Error);
  EXPECT_NO_THROW(softshrink(x.to(kBFloat16), 1e38));
  EXPECT_TRUE(softshrink(x.to(kFloat16), 65504).equal(zeros({2}, kFloat16)));
  EXPECT_TRUE(softshrink(x, 0).equal(x));
  EXPECT_TRUE(softshrink(x.to(kFloat64), 1e300).equal(zeros({2}, kFloat64)));
  EXPECT_EQ(message_of([&] { bitwise_not(x); }), "\"bitwise_not\" not implemented for 'Float'");
  EXPECT_EQ(message_of([&] { polygamma(-1, x); }), "polygamma(n, x) does not support negative n, but got n = -1");
  const Tensor p = tensor({0.5, 2.}, kDoubles);
  EXPECT_TRUE(polygamma(0, p).equal(digamma(p)));
  EXPECT_NEAR(polygamma(1, p)[1].item<double>(), 0.6449340668482264, 1e-9);
  EXPECT_NEAR(polygamma(2, p)[1].item<double>(), -0.4041138063191886, 1e-9);
  EXPECT_EQ(message_of([&] { gelu(x, "erf"); }), "approximate argument must be either none or tanh, got 'erf'");
  EXPECT_THROW(gelu(tensor({1})), Error);
  EXPECT_FALSE(gelu(x, "tanh").equal(gelu(x, "none")));
  EXPECT_TRUE(gelu(x, "tanh").allclose(gelu(x, "none"), 1e-2, 1e-2));
}

TEST(UnaryRules, InPlaceTheSlopeIsThatOfTheValuesBefore) {
  const Tensor at = tensor({0.25, -0.5, 0.75}, kDoubles);
  const auto agree = [&](auto in_place, auto apart) {
    const Tensor a = slope_of(at, [&](const Tensor& x) {
      Tensor y = x.mul(1);
      in_place(y);
      return y;
    });
    EXPECT_TRUE(a.allclose(slope_of(at, apart), 1e-12, 1e-12));
  };
  agree([](Tensor& y) { y.sin_(); }, [](const Tensor& x) { return x.sin(); });
  agree([](Tensor& y) { y.tanh_(); }, [](const Tensor& x) { return x.tanh(); });
  agree([](Tensor& y) { y.square_(); }, [](const Tensor& x) { return x.square(); });
  agree([](Tensor& y) { y.floor_(); }, [](const Tensor& x) { return x.floor(); });
  agree([](Tensor& y) { y.div_(y.detach().add(3)); }, [](const Tensor& x) { return x / (x.detach() + 3); });
  agree([](Tensor& y) { y.pow_(3); }, [](const Tensor& x) { return x.pow(3); });
  agree([](Tensor& y) { y.add_(y, 2); }, [](const Tensor& x) { return x * 3; });
  const Tensor other = at.mul(2).add(3);
  agree([&](Tensor& y) { y.sub_(other, 2); }, [&](const Tensor& x) { return x.sub(other, 2); });
  agree([&](Tensor& y) { y.atan2_(other); }, [&](const Tensor& x) { return x.atan2(other); });
  const Tensor leaf = at.clone().requires_grad_();
  Tensor y = leaf.tanh();
  y.add_(1);
  EXPECT_THROW(y.sum().backward(), Error) << "its result was overwritten";
  EXPECT_THROW(leaf.exp_(), Error);
}

TEST(ClampRules, ABoundHasTheResultsDtypeAndNaNMakesAllNaN) {
  const Tensor x = tensor({-3, 0, 5}), f = tensor({-3.f, 0.f, 5.f});
  EXPECT_EQ(x.clamp(-1, 2).scalar_type(), kInt64);
  EXPECT_EQ(x.clamp(-1.5, 2).scalar_type(), kFloat32);
  EXPECT_EQ(x.clamp(-1, 2.5).scalar_type(), kFloat32);
  EXPECT_TRUE(x.clamp(-1.5, 2).equal(tensor({-1.5f, 0.f, 2.f})));
  EXPECT_TRUE(x.clamp_min(0.5).equal(tensor({0.5f, 0.5f, 5.f})));
  EXPECT_TRUE(x.clamp_max(0.5).equal(tensor({-3.f, 0.f, 0.5f})));
  EXPECT_TRUE(x.clamp(std::nullopt, Scalar(1)).equal(tensor({-3, 0, 1})));
  EXPECT_TRUE(x.clamp(Scalar(1), std::nullopt).equal(tensor({1, 1, 5})));
  EXPECT_TRUE(x.clamp(3, 1).equal(tensor({1, 1, 1}))) << "of crossed bounds the high one";
  EXPECT_TRUE(f.clone().clamp_(-1, 2).equal(tensor({-1.f, 0.f, 2.f})));
  EXPECT_TRUE(f.clone().clamp_(Scalar(-1), std::nullopt).equal(tensor({-1.f, 0.f, 5.f})));
  EXPECT_TRUE(f.clone().clamp_(std::nullopt, Scalar(2)).equal(tensor({-3.f, 0.f, 2.f})));
  const auto all_nan = [](const Tensor& t) { return t.isnan().all().item<bool>(); };
  EXPECT_TRUE(all_nan(f.clamp(kNoNumber, 2.)));
  EXPECT_TRUE(all_nan(f.clamp(-1., kNoNumber)));
  EXPECT_TRUE(all_nan(f.clamp_min(kNoNumber)));
  EXPECT_TRUE(all_nan(f.clamp_max(kNoNumber)));
  EXPECT_TRUE(all_nan(f.clone().clamp_(kNoNumber, 2.)));
  EXPECT_TRUE(all_nan(f.clone().clamp_(-1., kNoNumber)));
  EXPECT_TRUE(all_nan(f.clone().clamp_min_(kNoNumber)));
  EXPECT_TRUE(all_nan(f.clone().clamp_max_(kNoNumber)));
}

TEST(ClampRules, WhatDoesNotFitIsRefused) {
  const Tensor x = tensor({-3, 0, 5}), truth = tensor({true});
  const std::string none = "torch.clamp: At least one of 'min' or 'max' must not be None";
  const std::optional<Scalar> missing;
  EXPECT_EQ(message_of([&] { x.clamp(missing, missing); }), none);
  EXPECT_EQ(message_of([&] { x.clone().clamp_(missing, missing); }), none);
  EXPECT_EQ(message_of([&] { clamp(x, std::optional<Tensor>(), std::optional<Tensor>()); }), none);
  const std::string cast = "result type Float can't be cast to the desired output type Long (in operator clamp_)";
  EXPECT_EQ(message_of([&] { x.clone().clamp_(0.5, 2); }), cast);
  EXPECT_EQ(message_of([&] { x.clone().clamp_(0, 2.5); }), cast);
  EXPECT_EQ(message_of([&] { x.clone().clamp_min_(0.5); }), cast);
  EXPECT_EQ(message_of([&] { x.clone().clamp_max_(0.5); }), cast);
  const auto text = [](const char* op) { return std::string("\"") + op + "\" not implemented for 'Bool'"; };
  EXPECT_EQ(message_of<NotImplementedError>([&] { truth.clamp(false, true); }), text("clamp_scalar_cpu"));
  EXPECT_EQ(message_of<NotImplementedError>([&] { truth.clamp_min(false); }), text("clamp_min_scalar_cpu"));
  EXPECT_EQ(message_of<NotImplementedError>([&] { truth.clamp_max(false); }), text("clamp_max_scalar_cpu"));
  const Tensor byte = tensor({1, 200}).to(kUInt8), small = tensor({-100, 100}).to(kInt8);
  EXPECT_EQ(message_of([&] { byte.clamp_min(256); }), "Clamp min value 256 is outside the representable range of Byte");
  EXPECT_EQ(message_of([&] { byte.clamp_max(-1); }), "Clamp max value -1 is outside the representable range of Byte");
  EXPECT_TRUE(byte.clamp(-5, 300).equal(byte)) << "bounds beyond what elements reach bind nobody";
  EXPECT_TRUE(byte.clamp(255, 300).equal(full({2}, 255, kUInt8)));
  EXPECT_TRUE(small.clamp(-1000, 127).equal(small));
  EXPECT_THROW(small.clamp_min(128), Error);
  EXPECT_THROW(small.clamp_max(-129), Error);
  EXPECT_TRUE(small.clamp_max(-128).equal(full({2}, -128, kInt8)));
  EXPECT_THROW(small.to(kInt16).clamp_min(32768), Error);
  EXPECT_THROW(small.to(kInt32).clamp_min(std::int64_t{1} << 31), Error);
  EXPECT_NO_THROW(small.to(kInt64).clamp_min(std::int64_t{1} << 31));
}

TEST(BinaryRules, TruthValuesAreNotSubtracted) {
  const Tensor truth = tensor({true, false}), x = tensor({1, 2});
  const std::string both =
      "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
      "instead.";
  const std::string one =
      "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
      "`~` or `logical_not()` operator instead.";
  EXPECT_EQ(message_of([&] { truth - truth; }), both);
  EXPECT_EQ(message_of([&] { truth - true; }), both);
  EXPECT_EQ(message_of([&] { true - truth; }), both);
  EXPECT_EQ(message_of([&] { truth.clone().sub_(truth); }), both);
  EXPECT_EQ(message_of([&] { truth - x; }), one);
  EXPECT_EQ(message_of([&] { x - truth; }), one);
  EXPECT_EQ(message_of([&] { truth - 1; }), one);
  EXPECT_EQ(message_of([&] { x - true; }), one);
  EXPECT_EQ(message_of([&] { 1 - truth; }), one);
  EXPECT_EQ(message_of([&] { x.clone().sub_(truth); }), one);
  EXPECT_EQ(message_of([&] { x.clone().sub_(true); }), one);
  Tensor out = x.clone();
  EXPECT_EQ(message_of([&] { sub_out(out, x, truth); }), one);
  EXPECT_TRUE((truth + truth).equal(tensor({true, false})));
}

TEST(BinaryRules, AlphaIsANumberOfTheResultsKind) {
  const Tensor whole = tensor({1, 2}), f = tensor({1.f, 2.f}), truth = tensor({true, false});
  const std::string fraction =
      "For integral input tensors, argument alpha must not be a floating point number. (in operator ";
  EXPECT_EQ(message_of([&] { whole.add(whole, 0.5); }), fraction + "add)");
  EXPECT_EQ(message_of([&] { whole.add(3, 0.5); }), fraction + "add)");
  EXPECT_EQ(message_of([&] { whole.clone().add_(whole, 0.5); }), fraction + "add_)");
  EXPECT_EQ(message_of([&] { whole.sub(whole, 0.5); }), fraction + "sub)");
  EXPECT_EQ(message_of([&] { whole.clone().sub_(3, 0.5); }), fraction + "sub_)");
  EXPECT_EQ(message_of([&] { f.add(f, true); }), "Boolean alpha only supported for Boolean results. (in operator add)");
  EXPECT_EQ(message_of([&] { f.sub(f, true); }), "Boolean alpha only supported for Boolean results. (in operator sub)");
  EXPECT_TRUE(truth.add(truth, false).equal(truth));
  EXPECT_TRUE(whole.add(whole, 3).equal(tensor({4, 8})));
  EXPECT_TRUE(whole.sub(whole, 3).equal(tensor({-2, -4})));
  for (const std::int64_t alpha : {-1, 0, 1, 2, 3}) {
    EXPECT_TRUE(whole.add(5, alpha).equal(whole + 5 * alpha)) << alpha;
    EXPECT_TRUE(whole.sub(5, alpha).equal(whole - 5 * alpha)) << alpha;
    EXPECT_TRUE(whole.add(whole, alpha).equal(whole + whole * alpha)) << alpha;
    EXPECT_TRUE(whole.sub(whole, alpha).equal(whole - whole * alpha)) << alpha;
  }
  EXPECT_TRUE(f.sub(5, 0.5).equal(tensor({-1.5f, -0.5f})));
  EXPECT_TRUE(f.add(true, 2).equal(tensor({2.f, 3.f})));
  EXPECT_TRUE(f.clone().sub_(f, 0.5).equal(tensor({0.5f, 1.f})));
  EXPECT_THROW(tensor({1}).to(kInt8).add(tensor({1}).to(kInt8), 128), Error) << "no element holds it";
  EXPECT_TRUE(slope_of(f, [&](const Tensor& x) { return f.sub(x, 3); }).equal(tensor({-3.f, -6.f})));
  EXPECT_TRUE(slope_of(f, [&](const Tensor& x) { return f.add(x, 3); }).equal(tensor({3.f, 6.f})));
}

TEST(BinaryRules, PowersOfIntegersAreIntegersAndHaveNoNegativeExponents) {
  const Tensor whole = tensor({2, -3}), f = tensor({4.f, 0.25f});
  const std::string text = "Integers to negative integer powers are not allowed.";
  EXPECT_EQ(message_of([&] { whole.pow(-1); }), text);
  EXPECT_EQ(message_of([&] { whole.clone().pow_(-1); }), text);
  EXPECT_TRUE(whole.pow(0).equal(tensor({1, 1})));
  EXPECT_TRUE(whole.pow(3).equal(tensor({8, -27})));
  EXPECT_TRUE(whole.clone().pow_(3).equal(tensor({8, -27})));
  EXPECT_TRUE(tensor({2, 4}).pow(-0.5).allclose(tensor({0.70710678f, 0.5f})));
  EXPECT_EQ(whole.pow(2.).scalar_type(), kFloat32);
  EXPECT_TRUE(f.pow(0.5).equal(tensor({2.f, 0.5f})));
  EXPECT_TRUE(f.pow(-0.5).equal(tensor({0.5f, 2.f})));
  EXPECT_TRUE(f.clone().pow_(0.5).equal(tensor({2.f, 0.5f})));
  EXPECT_TRUE(f.clone().pow_(-0.5).equal(tensor({0.5f, 2.f})));
  EXPECT_TRUE(f.clone().pow_(2).equal(tensor({16.f, 0.0625f})));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(full({1}, -infinity).pow(0.5).item<double>())) << "a root";
  EXPECT_EQ(full({1}, -infinity, kFloat16).pow(0.5).item<double>(), infinity) << "of float16 it is a power";
  EXPECT_TRUE(pow(2, tensor({3, 0})).equal(tensor({8, 1})));
  EXPECT_TRUE(slope_of(f, [](const Tensor& x) { return x.pow(-0.5); }).allclose(tensor({-0.0625f, -8.f}), 1e-5, 1e-6));
  EXPECT_THROW(tensor({2}).to(kInt8).pow(1000), Error) << "int8 does not hold the exponent";
}

TEST(BinaryRules, TheSlopeOfASlopeBesideANumber) {
  const double x = 1.75;
  const auto second = [&](auto made) {
    const Tensor at = full({}, x, kFloat64).requires_grad_();
    const Tensor slope = autograd::grad({made(at)}, {at}, {}, std::nullopt, true)[0];
    return slope.requires_grad() ? autograd::grad({slope}, {at})[0].item<double>() : 0;
  };
  const double log2 = std::log(2);
  EXPECT_NEAR(second([](const Tensor& t) { return pow(2., t); }), log2 * log2 * std::pow(2, x), 1e-12);
  EXPECT_NEAR(second([](const Tensor& t) { return t.pow(3); }), 6 * x, 1e-12);
  EXPECT_NEAR(second([](const Tensor& t) { return t.pow(t.detach()); }), x * (x - 1) * std::pow(x, x - 2), 1e-12);
  EXPECT_NEAR(second([](const Tensor& t) { return pow(t.detach(), t); }), std::pow(std::log(x), 2) * std::pow(x, x),
              1e-12);
  EXPECT_NEAR(second([](const Tensor& t) { return 2. / t; }), 4 / (x * x * x), 1e-12);
  EXPECT_NEAR(second([](const Tensor& t) { return t.square() / 4.; }), 0.5, 1e-12);
  EXPECT_NEAR(second([](const Tensor& t) { return t.square().remainder(2); }), 2, 1e-12);
  EXPECT_NEAR(second([](const Tensor& t) { return 5. % t.square(); }), -2, 1e-12);
  EXPECT_NEAR(second([](const Tensor& t) { return t.square().fmod(2); }), 2, 1e-12);
  EXPECT_NEAR(second([](const Tensor& t) { return 2. - t.pow(3); }), -6 * x, 1e-12);
  EXPECT_NEAR(second([](const Tensor& t) { return xlogy(2., t); }), -2 / (x * x), 1e-12);
  EXPECT_NEAR(second([](const Tensor& t) { return t.square().maximum(full({}, 1, kFloat64)); }), 2, 1e-12);
}

TEST(BinaryRules, ATensorWithoutDimensionsOfAnotherDeviceIsANumber) {
  const Device there("simulated:0");
  const Tensor x = tensor({1.f, 2.f}).to(TensorOptions(there)), two = tensor(2.f), pair = tensor({2.f, 2.f});
  const auto here = [](const Tensor& t) { return t.cpu(); };
  EXPECT_TRUE(here(x + two).equal(tensor({3.f, 4.f})));
  EXPECT_TRUE(here(two - x).equal(tensor({1.f, 0.f})));
  EXPECT_EQ((two - x).device(), there);
  EXPECT_TRUE(here(x.clone().mul_(two)).equal(tensor({2.f, 4.f})));
  EXPECT_TRUE(here(x.eq(two)).equal(tensor({false, true})));
  EXPECT_TRUE(here(two.gt(x)).equal(tensor({true, false})));
  for (const auto& call : std::vector<std::function<void()>>{[&] { x + pair; }, [&] { pair + x; },
                                                             [&] { x.clone().add_(pair); }, [&] { x.lt(pair); },
                                                             [&] {
                                                               tensor({1, 2}).bitwise_and(x.to(kInt64));
                                                             },
                                                             [&] { where(x.gt(1), pair, pair); },
                                                             [&] {
                                                               Tensor out = pair.clone(), other = x;
                                                               add_out(out, other, other);
                                                             },
                                                             [&] { x.equal(pair); }, [&] { pair.nextafter(x); },
                                                             [&] {
                                                               tensor({1, 2}).bitwise_left_shift(x.to(kInt64));
                                                             }})
    EXPECT_THAT(message_of(call), testing::HasSubstr("simulated:0"));
}

TEST(BinaryRules, FactorsAndDivisorsKeepTheirDigitsBesideSixteenBits) {
  for (const Dtype dtype : {kFloat16, kBFloat16}) {
    const Tensor x = arange(1, 300, TensorOptions(dtype)), wide = x.to(kFloat32);
    const double third = 1. / 3;
    const float rounded = full({}, third, dtype).to(kFloat32).item<float>();
    for (const Tensor& number : {full({}, third, kFloat32), full({}, third, kFloat64)}) {
      EXPECT_TRUE((x * number).equal(wide.mul(third).to(dtype)));
      EXPECT_TRUE((x / number).equal(wide.div(static_cast<float>(third)).to(dtype)));
      EXPECT_TRUE((x + number).equal(wide.add(rounded).to(dtype)));
      EXPECT_EQ((x * number).scalar_type(), dtype);
    }
    EXPECT_TRUE((x * third).equal(wide.mul(third).to(dtype)));
    EXPECT_TRUE((x - third).equal(wide.sub(rounded).to(dtype)));
    EXPECT_TRUE((x * full({}, third, dtype)).equal(wide.mul(rounded).to(dtype)));
    EXPECT_TRUE(full({1}, third, dtype).eq(third).item<bool>()) << "compared as one of its elements";
  }
}

TEST(BinaryRules, IntoATensorThatIsGivenItIsResizedAndNotDifferentiated) {
  const Tensor a = tensor({1.f, 2.f}), b = tensor({{3.f}, {4.f}}), wants = tensor({1.f, 2.f}).requires_grad_();
  Tensor out = empty({0});
  EXPECT_TRUE(add_out(out, a, b).equal(tensor({{4.f, 5.f}, {5.f, 6.f}})));
  EXPECT_EQ(out._version(), 1);
  Tensor same = tensor({1.f, 2.f});
  EXPECT_TRUE(mul_out(same, same, same).equal(tensor({1.f, 4.f})));
  EXPECT_THROW(add_out(same, same, b), Error) << "an operand is not resized";
  EXPECT_THROW(add_out(same, b, same), Error);
  const std::string text =
      "add(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
      "requires grad.";
  EXPECT_EQ(message_of([&] { add_out(out, wants, a); }), text);
  EXPECT_EQ(message_of([&] { add_out(out, a, wants); }), text);
  Tensor leaf = wants;
  EXPECT_EQ(message_of([&] { add_out(leaf, a, a); }), text);
  Tensor whole = zeros({2}, kInt64), wide = zeros({2}, kFloat64);
  EXPECT_EQ(message_of([&] { add_out(whole, a, a); }),
            "result type Float can't be cast to the desired output type Long (in operator add)");
  EXPECT_TRUE(add_out(wide, a, a).equal(tensor({2., 4.}, kDoubles)));
  Tensor line = arange(6.).clone();
  Tensor later = line.slice(0, 1, 6);
  EXPECT_TRUE(add_out(later, line.slice(0, 0, 5), line.slice(0, 0, 5)).equal(tensor({0.f, 2.f, 4.f, 6.f, 8.f})));
  line = arange(6.).clone();
  later = line.slice(0, 1, 6);
  EXPECT_TRUE(add_out(later, zeros({5}), line.slice(0, 0, 5)).equal(tensor({0.f, 1.f, 2.f, 3.f, 4.f})));
  const Tensor first = arange(99.), last = arange(1., 100.);
  line = arange(100.).clone();
  line.slice(0, 1, 100).add_(line.slice(0, 0, 99));
  EXPECT_TRUE(line.slice(0, 1, 100).equal(first + last)) << "read before it is written";
  line = arange(100.).clone();
  later = line.slice(0, 1, 100);
  EXPECT_TRUE(add_out(later, line.slice(0, 0, 99), last).equal(first + last));
  line = arange(100.).clone();
  later = line.slice(0, 1, 100);
  EXPECT_TRUE(add_out(later, last, line.slice(0, 0, 99)).equal(first + last));
  Tensor tight = zeros({1}).expand({2});
  EXPECT_THROW(add_out(tight, a, a), Error);
}

TEST(BinaryRules, InPlaceTheLeftSideKeepsSizesAndDtype) {
  Tensor x = tensor({1.f, 2.f});
  EXPECT_EQ(message_of([&] {
              x.add_(ones({2, 2}));
            }),
            "output with shape [2] doesn't match the broadcast shape [2, 2]");
  EXPECT_THAT(message_of([&] { x.add_(ones({3})); }), testing::HasSubstr("(sizes [2] and [3], in operator add)"));
  EXPECT_THAT(message_of([&] { x.mul(ones({3})); }), testing::HasSubstr("(sizes [2] and [3], in operator mul)"));
  Tensor whole = tensor({7, 8});
  EXPECT_EQ(message_of([&] { whole.mul_(0.5); }),
            "result type Float can't be cast to the desired output type Long (in operator mul)");
  EXPECT_THROW(whole.div_(2), Error);
  EXPECT_THROW(whole.add_(x), Error);
  EXPECT_TRUE(whole.equal(tensor({7, 8})));
  Tensor half = tensor({1.f, 2.f}).to(kFloat16);
  half.add_(tensor({0.0004, 3000.}, kDoubles));
  EXPECT_EQ(half.scalar_type(), kFloat16);
  EXPECT_TRUE(half.equal(tensor({1.0004, 3002.}, kDoubles).to(kFloat16)));
  half.mul_(tensor(2., kDoubles));
  EXPECT_TRUE(half.equal(tensor({1.0004, 3002.}, kDoubles).to(kFloat16).mul(2)));
  Tensor small = tensor({100, 3}).to(kInt8);
  small.add_(tensor({100, 300}).to(kInt64));
  EXPECT_TRUE(small.equal(tensor({-56, 47}).to(kInt8))) << "computed as int64, then cut off";
  EXPECT_THROW(zeros({1}).expand({2}).add_(1), Error);
  EXPECT_THROW(tensor({1.f}).requires_grad_().mul_(2), Error);
}

}  // namespace
}  // namespace tenon::test
