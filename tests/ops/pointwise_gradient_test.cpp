// Every unary and binary operator against differences, on contiguous, strided, broadcast and empty inputs.
#include "gradcheck.h"

namespace tenon::testing {
namespace {

struct UnaryCase {
  const char* name;
  std::function<Tensor(const Tensor&)> function;
  double low;
  double high;
};

std::vector<UnaryCase> unary_cases() {
#define CASE(name, low, high)                                        \
  {                                                                  \
#name, [](const Tensor& x) { return tenon::name(x); }, low, high \
  }
  return {
      CASE(neg, -2, 2),
      CASE(abs, 0.1, 2),
      CASE(sign, 0.1, 2),
      CASE(square, -2, 2),
      CASE(exp, -1, 1),
      CASE(exp2, -1, 1),
      CASE(expm1, -1, 1),
      CASE(log, 0.2, 3),
      CASE(log2, 0.2, 3),
      CASE(log10, 0.2, 3),
      CASE(log1p, -0.5, 2),
      CASE(sqrt, 0.2, 3),
      CASE(rsqrt, 0.3, 3),
      CASE(reciprocal, 0.3, 3),
      CASE(sin, -2, 2),
      CASE(cos, -2, 2),
      CASE(tan, -1, 1),
      CASE(asin, -0.8, 0.8),
      CASE(acos, -0.8, 0.8),
      CASE(atan, -2, 2),
      CASE(sinh, -1, 1),
      CASE(cosh, -1, 1),
      CASE(tanh, -2, 2),
      CASE(asinh, -2, 2),
      CASE(acosh, 1.3, 3),
      CASE(atanh, -0.7, 0.7),
      CASE(erf, -1, 1),
      CASE(erfc, -1, 1),
      CASE(erfinv, -0.7, 0.7),
      CASE(sigmoid, -3, 3),
      CASE(relu, 0.1, 2),
      CASE(relu6, 0.5, 5),
      CASE(silu, -2, 2),
      CASE(mish, -2, 2),
      CASE(gelu, -2, 2),
      CASE(selu, 0.1, 2),
      CASE(selu, -2, -0.1),
      CASE(celu, -2, -0.1),
      CASE(elu, -2, -0.1),
      CASE(leaky_relu, -2, -0.1),
      CASE(hardtanh, -0.9, 0.9),
      CASE(hardsigmoid, -2, 2),
      CASE(hardswish, -2, 2),
      CASE(softplus, -2, 2),
      CASE(softsign, 0.1, 2),
      CASE(tanhshrink, -2, 2),
      CASE(log_sigmoid, -2, 2),
      CASE(deg2rad, -2, 2),
      CASE(rad2deg, -2, 2),
      CASE(sinc, 0.3, 1.5),
      CASE(frac, 0.1, 0.9),
      {"gelu_tanh", [](const Tensor& x) { return tenon::gelu(x, "tanh"); }, -2, 2},
      {"pow_scalar", [](const Tensor& x) { return x.pow(2.5); }, 0.3, 2},
      {"scalar_pow", [](const Tensor& x) { return tenon::pow(Scalar(1.7), x); }, -1, 1},
      {"clamp", [](const Tensor& x) { return x.clamp(-0.5, 0.5); }, -0.4, 0.4},
      {"hardshrink", [](const Tensor& x) { return tenon::hardshrink(x); }, 0.6, 2},
      {"softshrink", [](const Tensor& x) { return tenon::softshrink(x); }, 0.6, 2},
      {"threshold", [](const Tensor& x) { return tenon::threshold(x, 0.1, 5); }, 0.2, 2},
      {"rsub", [](const Tensor& x) { return Scalar(2.0) - x; }, -1, 1},
      {"rdiv", [](const Tensor& x) { return Scalar(2.0) / x; }, 0.5, 2},
  };
#undef CASE
}

TEST(PointwiseGradient, OfEveryUnaryOperator) {
  manual_seed(11);
  for (const UnaryCase& one : unary_cases()) {
    const Function function = [&](const std::vector<Tensor>& x) { return one.function(x[0]); };
    check_gradients(std::string(one.name) + " contiguous", function, {leaf({2, 3}, one.low, one.high)});
    check_gradients(std::string(one.name) + " strided", function, {strided_leaf(2, 3, one.low, one.high)});
    check_gradients(std::string(one.name) + " scalar", function, {leaf({}, one.low, one.high)});
    const Tensor row = leaf({3}, one.low, one.high);
    check_gradients(std::string(one.name) + " broadcast",
                    [&](const std::vector<Tensor>& x) {
                      return one.function(x[0].expand({2, 3}));
                    },
                    {row});
    const Tensor none = leaf({0, 3}, one.low, one.high);
    one.function(none).sum().backward();
    EXPECT_EQ(none.grad().sizes().vec(), none.sizes().vec()) << one.name;
    if (HasFatalFailure()) return;
  }
}

struct BinaryCase {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> function;
  double low;
  double high;
};

std::vector<BinaryCase> binary_cases() {
#define CASE(name, low, high)                                                            \
  {                                                                                      \
#name, [](const Tensor& a, const Tensor& b) { return tenon::name(a, b); }, low, high \
  }
  return {CASE(add, -2, 2),
          CASE(sub, -2, 2),
          CASE(mul, -2, 2),
          CASE(div, 0.5, 2),
          CASE(pow, 0.5, 2),
          CASE(maximum, -2, 2),
          CASE(minimum, -2, 2),
          CASE(atan2, 0.3, 2),
          CASE(hypot, 0.3, 2),
          CASE(logaddexp, -1, 1),
          CASE(copysign, 0.3, 2),
          {"add alpha", [](const Tensor& a, const Tensor& b) { return a.add(b, 2.5); }, -2, 2},
          {"sub alpha", [](const Tensor& a, const Tensor& b) { return a.sub(b, 2.5); }, -2, 2},
          {"where", [](const Tensor& a, const Tensor& b) { return tenon::where(a.detach().gt(b.detach()), a * 2, b); },
           -2, 2},
          {"lerp", [](const Tensor& a, const Tensor& b) { return a.lerp(b, 0.3); }, -2, 2},
          {"lerp tensor", [](const Tensor& a, const Tensor& b) { return a.lerp(b, a.sigmoid()); }, -2, 2},
          {"addcmul", [](const Tensor& a, const Tensor& b) { return a.addcmul(a, b, 0.7); }, -2, 2},
          {"addcdiv", [](const Tensor& a, const Tensor& b) { return a.addcdiv(a, b, 0.7); }, 0.5, 2}};
#undef CASE
}

TEST(PointwiseGradient, OfEveryBinaryOperator) {
  manual_seed(12);
  for (const BinaryCase& one : binary_cases()) {
    const Function function = [&](const std::vector<Tensor>& x) { return one.function(x[0], x[1]); };
    check_gradients(std::string(one.name) + " contiguous", function,
                    {leaf({2, 3}, one.low, one.high), leaf({2, 3}, one.low, one.high)});
    check_gradients(std::string(one.name) + " strided", function,
                    {strided_leaf(2, 3, one.low, one.high), leaf({2, 3}, one.low, one.high)});
    check_gradients(std::string(one.name) + " broadcast", function,
                    {leaf({2, 1}, one.low, one.high), leaf({3}, one.low, one.high)});
    const Tensor none = leaf({0, 3}, one.low, one.high);
    const Tensor partner = leaf({3}, one.low, one.high);
    one.function(none, partner).sum().backward();
    EXPECT_EQ(none.grad().sizes().vec(), none.sizes().vec()) << one.name;
    EXPECT_TRUE(partner.grad().equal(zeros({3}, kFloat64))) << one.name;
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tenon::testing
