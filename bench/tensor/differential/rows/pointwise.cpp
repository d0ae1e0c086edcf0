// Pointwise functions: as a function, a method, in place and into a tensor given.
#include "../table.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {

// Words of `arguments`: x any tensor, f a floating one, y one that broadcasts with x, s a number; see kinds.py.
#define FUNCTION(name, words, parameters, ...) \
  add(#name, words, [] parameters { return torch::name(__VA_ARGS__); });
#define METHOD(name, words, parameters, self, ...) \
  add("Tensor." #name, words, [] parameters { return self.name(__VA_ARGS__); });
#define IN_PLACE(name, words, parameters, self, ...) \
  add("Tensor." #name "_", words, [] parameters { return Tensor(self.name##_(__VA_ARGS__)); });
#define OUT(name, words, parameters, ...) \
  add(#name "_out", "out " words, [] parameters { return Tensor(torch::name##_out(__VA_ARGS__)); });

#define UNARY(name)                                   \
  FUNCTION(name, "x", (Tensor x), x)                  \
  METHOD(name, "x", (Tensor x), x)                    \
  IN_PLACE(name, "x", (Tensor x), x)                  \
  OUT(name, "x", (Tensor out, Tensor x), out, x)
#define PREDICATE(name)              \
  FUNCTION(name, "x", (Tensor x), x) \
  METHOD(name, "x", (Tensor x), x)
#define BINARY(name)                                                       \
  FUNCTION(name, "x y", (Tensor x, Tensor y), x, y)                        \
  METHOD(name, "x y", (Tensor x, Tensor y), x, y)                          \
  IN_PLACE(name, "x y", (Tensor x, Tensor y), x, y)                        \
  OUT(name, "x y", (Tensor out, Tensor x, Tensor y), out, x, y)
#define BINARY_NUMBER(name)                                                          \
  add(#name ".Scalar", "x s", [](Tensor x, Scalar s) { return torch::name(x, s); }); \
  add("Tensor." #name "_.Scalar", "x s", [](Tensor x, Scalar s) { return Tensor(x.name##_(s)); });
#define OPERATOR(symbol, name)                                                             \
  add("operator" symbol, "x y", [](Tensor x, Tensor y) { return x name y; });              \
  add("operator" symbol ".Scalar", "x s", [](Tensor x, Scalar s) { return x name s; });    \
  add("operator" symbol ".left", "x s", [](Tensor x, Scalar s) { return s name x; });
#define ASSIGNMENT(symbol, name)                                                             \
  add("operator" symbol "=", "x y", [](Tensor x, Tensor y) { x name y; return x; });         \
  add("operator" symbol "=.Scalar", "x s", [](Tensor x, Scalar s) { x name s; return x; });

namespace {

void unary() {
  UNARY(abs) UNARY(neg) UNARY(sign) UNARY(square) UNARY(sqrt) UNARY(rsqrt) UNARY(reciprocal) UNARY(exp) UNARY(exp2)
  UNARY(expm1) UNARY(log) UNARY(log2) UNARY(log10) UNARY(log1p) UNARY(sin) UNARY(cos) UNARY(tan) UNARY(asin) UNARY(acos)
  UNARY(atan) UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(asinh) UNARY(acosh) UNARY(atanh) UNARY(sinc) UNARY(deg2rad)
  UNARY(rad2deg) UNARY(erf) UNARY(erfc) UNARY(erfinv) UNARY(lgamma) UNARY(digamma) UNARY(ceil) UNARY(floor) UNARY(round)
  UNARY(trunc) UNARY(frac) UNARY(sigmoid)
  PREDICATE(logical_not) PREDICATE(bitwise_not) OUT(logical_not, "x", (Tensor out, Tensor x), out, x)
  OUT(bitwise_not, "x", (Tensor out, Tensor x), out, x)
  IN_PLACE(logical_not, "x", (Tensor x), x) IN_PLACE(bitwise_not, "x", (Tensor x), x)
  PREDICATE(isnan) PREDICATE(isinf) PREDICATE(isfinite) PREDICATE(signbit) PREDICATE(sgn) PREDICATE(negative)
  PREDICATE(absolute) PREDICATE(fix) PREDICATE(arccos) PREDICATE(arcsin) PREDICATE(arctan) PREDICATE(arccosh)
  PREDICATE(arcsinh) PREDICATE(arctanh) PREDICATE(positive) PREDICATE(isposinf) PREDICATE(isneginf)
  FUNCTION(relu, "x", (Tensor x), x) METHOD(relu, "x", (Tensor x), x) IN_PLACE(relu, "x", (Tensor x), x)
  FUNCTION(selu, "x", (Tensor x), x) FUNCTION(hardtanh, "x", (Tensor x), x) FUNCTION(relu6, "x", (Tensor x), x)
  FUNCTION(silu, "x", (Tensor x), x) FUNCTION(mish, "x", (Tensor x), x) FUNCTION(hardsigmoid, "x", (Tensor x), x)
  FUNCTION(hardswish, "x", (Tensor x), x) FUNCTION(log_sigmoid, "x", (Tensor x), x)
  FUNCTION(special_ndtr, "x", (Tensor x), x) FUNCTION(special_entr, "x", (Tensor x), x)
  add("special.expit", "x", [](Tensor x) { return torch::special::expit(x); });
  add("special.gammaln", "x", [](Tensor x) { return torch::special::gammaln(x); });
  add("special.psi", "x", [](Tensor x) { return torch::special::psi(x); });
  add("polygamma", "int(0..3) x", [](std::int64_t n, Tensor x) { return torch::polygamma(n, x); });
  add("logit", "x opt(real(0.01|0.25|0.0))", [](Tensor x, std::optional<double> eps) { return torch::logit(x, eps); });
  add("round.decimals", "x int(-1..3)", [](Tensor x, std::int64_t n) { return torch::round(x, n); });
  add("nan_to_num", "x opt(real(0.0|1.5)) opt(real(7.0)) opt(real(-7.0|3.0))",
      [](Tensor x, std::optional<double> a, std::optional<double> b, std::optional<double> c) {
        return torch::nan_to_num(x, a, b, c);
      });
  add("Tensor.nan_to_num_", "x opt(real(0.0|1.5))",
      [](Tensor x, std::optional<double> a) { return Tensor(x.nan_to_num_(a)); });
}

void activations() {
  add("leaky_relu", "x s", [](Tensor x, Scalar s) { return torch::leaky_relu(x, s); });
  add("elu", "x s", [](Tensor x, Scalar s) { return torch::elu(x, s); });
  add("celu", "x s", [](Tensor x, Scalar s) { return torch::celu(x, s); });
  add("softplus", "x s s", [](Tensor x, Scalar beta, Scalar threshold) { return torch::softplus(x, beta, threshold); });
  add("hardtanh.bounds", "x s s", [](Tensor x, Scalar a, Scalar b) { return torch::hardtanh(x, a, b); });
  add("hardshrink", "x s", [](Tensor x, Scalar s) { return torch::hardshrink(x, s); });
  add("softshrink", "x s", [](Tensor x, Scalar s) { return torch::softshrink(x, s); });
  add("threshold", "x s s", [](Tensor x, Scalar a, Scalar b) { return torch::threshold(x, a, b); });
  add("gelu", "x text(none|tanh)", [](Tensor x, std::string mode) { return torch::gelu(x, mode); });
  add("glu", "x dim", [](Tensor x, std::int64_t dim) { return torch::glu(x, dim); });
  add("prelu", "x prelu", [](Tensor x, Tensor w) { return torch::prelu(x, w); });
  add("rrelu", "x", [](Tensor x) { return torch::rrelu(x); });
  add("F.softsign", "x", [](Tensor x) { return torch::nn::functional::softsign(x); });
  add("F.tanhshrink", "x", [](Tensor x) { return torch::nn::functional::tanhshrink(x); });
  add("F.logsigmoid", "x", [](Tensor x) { return torch::nn::functional::logsigmoid(x); });
  add("F.softmin", "x dim", [](Tensor x, std::int64_t dim) {
    return torch::nn::functional::softmin(x, torch::nn::functional::SoftminFuncOptions(dim));
  });
}

void binary() {
  BINARY(mul) BINARY(div) BINARY(atan2) BINARY(hypot) BINARY(fmod) BINARY(remainder) BINARY(floor_divide) BINARY(pow)
  BINARY(ldexp) BINARY(copysign) BINARY(eq) BINARY(ne) BINARY(lt) BINARY(le) BINARY(gt) BINARY(ge) BINARY(logical_and)
  BINARY(logical_or) BINARY(logical_xor) BINARY(bitwise_and) BINARY(bitwise_or) BINARY(bitwise_xor) BINARY(add)
  BINARY(sub)
#define WITHOUT_OUT(name)                             \
  FUNCTION(name, "x y", (Tensor x, Tensor y), x, y)   \
  METHOD(name, "x y", (Tensor x, Tensor y), x, y)     \
  OUT(name, "x y", (Tensor out, Tensor x, Tensor y), out, x, y)
  WITHOUT_OUT(gcd) WITHOUT_OUT(lcm) WITHOUT_OUT(xlogy) WITHOUT_OUT(heaviside) WITHOUT_OUT(bitwise_left_shift)
  WITHOUT_OUT(bitwise_right_shift) WITHOUT_OUT(fmax) WITHOUT_OUT(fmin)
  IN_PLACE(gcd, "x y", (Tensor x, Tensor y), x, y) IN_PLACE(lcm, "x y", (Tensor x, Tensor y), x, y)
  IN_PLACE(xlogy, "x y", (Tensor x, Tensor y), x, y) IN_PLACE(heaviside, "x y", (Tensor x, Tensor y), x, y)
  BINARY(nextafter)
  BINARY_NUMBER(mul) BINARY_NUMBER(div) BINARY_NUMBER(pow) BINARY_NUMBER(fmod) BINARY_NUMBER(remainder)
  BINARY_NUMBER(floor_divide) BINARY_NUMBER(eq) BINARY_NUMBER(ne) BINARY_NUMBER(lt) BINARY_NUMBER(le) BINARY_NUMBER(gt)
  BINARY_NUMBER(ge) BINARY_NUMBER(bitwise_and) BINARY_NUMBER(bitwise_or) BINARY_NUMBER(bitwise_xor) BINARY_NUMBER(add)
  BINARY_NUMBER(sub) BINARY_NUMBER(xlogy) BINARY_NUMBER(copysign) BINARY_NUMBER(bitwise_left_shift)
  BINARY_NUMBER(bitwise_right_shift)
#define TWO(name) FUNCTION(name, "x y", (Tensor x, Tensor y), x, y) METHOD(name, "x y", (Tensor x, Tensor y), x, y) \
  OUT(name, "x y", (Tensor out, Tensor x, Tensor y), out, x, y)
  TWO(maximum) TWO(minimum) TWO(logaddexp) TWO(logaddexp2)
#undef TWO
  FUNCTION(arctan2, "x y", (Tensor x, Tensor y), x, y) FUNCTION(multiply, "x y", (Tensor x, Tensor y), x, y)
  FUNCTION(divide, "x y", (Tensor x, Tensor y), x, y) FUNCTION(true_divide, "x y", (Tensor x, Tensor y), x, y)
  FUNCTION(subtract, "x y", (Tensor x, Tensor y), x, y) FUNCTION(less, "x y", (Tensor x, Tensor y), x, y)
  FUNCTION(less_equal, "x y", (Tensor x, Tensor y), x, y) FUNCTION(greater, "x y", (Tensor x, Tensor y), x, y)
  FUNCTION(greater_equal, "x y", (Tensor x, Tensor y), x, y) FUNCTION(not_equal, "x y", (Tensor x, Tensor y), x, y)
  FUNCTION(max, "x y", (Tensor x, Tensor y), x, y) FUNCTION(min, "x y", (Tensor x, Tensor y), x, y)
  OPERATOR("+", +) OPERATOR("-", -) OPERATOR("*", *) OPERATOR("/", /) OPERATOR("<", <) OPERATOR("==", ==)
  OPERATOR("&", &) OPERATOR("|", |) OPERATOR("^", ^) OPERATOR("%", %) OPERATOR(">=", >=)
  ASSIGNMENT("+", +=) ASSIGNMENT("-", -=) ASSIGNMENT("*", *=) ASSIGNMENT("/", /=)
  add("operator&=", "x y", [](Tensor x, Tensor y) { x &= y; return x; });
  add("add.alpha", "x y s", [](Tensor x, Tensor y, Scalar s) { return torch::add(x, y, s); });
  add("sub.alpha", "x y s", [](Tensor x, Tensor y, Scalar s) { return torch::sub(x, y, s); });
  add("Tensor.add_.alpha", "x y s", [](Tensor x, Tensor y, Scalar s) { return Tensor(x.add_(y, s)); });
  add("Tensor.sub_.alpha", "x y s", [](Tensor x, Tensor y, Scalar s) { return Tensor(x.sub_(y, s)); });
  add("rsub", "x s", [](Tensor x, Scalar s) { return torch::rsub(x, s); });
  add("pow.base", "s x", [](Scalar s, Tensor x) { return torch::pow(s, x); });
  add("xlogy.left", "s x", [](Scalar s, Tensor x) { return torch::xlogy(s, x); });
  add("remainder.left", "s x", [](Scalar s, Tensor x) { return torch::remainder(s, x); });
  add("div.rounding", "x y opt(text(trunc|floor|none))",
      [](Tensor x, Tensor y, std::optional<std::string> mode) { return torch::div(x, y, mode); });
  add("div.Scalar.rounding", "x s opt(text(trunc|floor))",
      [](Tensor x, Scalar s, std::optional<std::string> mode) { return torch::div(x, s, mode); });
  add("isclose", "x y real(1e-5|0.1|0.0) real(1e-8|0.5) b",
      [](Tensor x, Tensor y, double r, double a, bool nan) { return torch::isclose(x, y, r, a, nan); });
  add("allclose", "x y real(1e-5|0.1) real(1e-8|0.5) b",
      [](Tensor x, Tensor y, double r, double a, bool nan) { return torch::allclose(x, y, r, a, nan); });
  add("equal", "x y", [](Tensor x, Tensor y) { return torch::equal(x, y); });
  add("result_type", "x y", [](Tensor x, Tensor y) { return torch::result_type(x, y); });
  add("result_type.Scalar", "x s", [](Tensor x, Scalar s) { return torch::result_type(x, s); });
  add("can_cast", "dtype dtype", [](Dtype a, Dtype b) { return torch::can_cast(a, b); });
}

void several() {
  add("where", "m x y", [](Tensor m, Tensor x, Tensor y) { return torch::where(m, x, y); });
  add("where.Scalar", "m x s", [](Tensor m, Tensor x, Scalar s) { return torch::where(m, x, s); });
  add("where.ScalarSelf", "m s x", [](Tensor m, Scalar s, Tensor x) { return torch::where(m, s, x); });
  add("where.Scalars", "m s s", [](Tensor m, Scalar a, Scalar b) { return torch::where(m, a, b); });
  add("where.one", "x", [](Tensor x) { return torch::where(x); });
  add("masked_fill", "x m s", [](Tensor x, Tensor m, Scalar s) { return torch::masked_fill(x, m, s); });
  add("masked_fill.Tensor", "x m n0", [](Tensor x, Tensor m, Tensor v) { return torch::masked_fill(x, m, v); });
  add("Tensor.masked_fill_", "x m s", [](Tensor x, Tensor m, Scalar s) { return Tensor(x.masked_fill_(m, s)); });
  add("Tensor.masked_fill_.Tensor", "x m n0",
      [](Tensor x, Tensor m, Tensor v) { return Tensor(x.masked_fill_(m, v)); });
  add("clamp", "x opt(s) opt(s)", [](Tensor x, OptionalScalar a, OptionalScalar b) { return torch::clamp(x, a, b); });
  add("clip", "x opt(s) opt(s)", [](Tensor x, OptionalScalar a, OptionalScalar b) { return torch::clip(x, a, b); });
  add("Tensor.clamp_", "x opt(s) opt(s)",
      [](Tensor x, OptionalScalar a, OptionalScalar b) { return Tensor(x.clamp_(a, b)); });
  add("clamp_out", "out x opt(s) opt(s)", [](Tensor out, Tensor x, OptionalScalar a, OptionalScalar b) {
    return Tensor(torch::clamp_out(out, x, a, b));
  });
  add("clamp.Tensor", "x opt(y) opt(y)",
      [](Tensor x, OptionalTensor a, OptionalTensor b) { return torch::clamp(x, a, b); });
  add("clamp_min", "x s", [](Tensor x, Scalar s) { return torch::clamp_min(x, s); });
  add("clamp_max", "x s", [](Tensor x, Scalar s) { return torch::clamp_max(x, s); });
  add("clamp_min.Tensor", "x y", [](Tensor x, Tensor y) { return torch::clamp_min(x, y); });
  add("clamp_max.Tensor", "x y", [](Tensor x, Tensor y) { return torch::clamp_max(x, y); });
  add("Tensor.clamp_min_", "x s", [](Tensor x, Scalar s) { return Tensor(x.clamp_min_(s)); });
  add("Tensor.clamp_max_", "x s", [](Tensor x, Scalar s) { return Tensor(x.clamp_max_(s)); });
  add("addcmul", "x y y s", [](Tensor x, Tensor a, Tensor b, Scalar s) { return torch::addcmul(x, a, b, s); });
  add("addcdiv", "x y y s", [](Tensor x, Tensor a, Tensor b, Scalar s) { return torch::addcdiv(x, a, b, s); });
  add("Tensor.addcmul_", "x y y s", [](Tensor x, Tensor a, Tensor b, Scalar s) { return Tensor(x.addcmul_(a, b, s)); });
  add("Tensor.addcdiv_", "x y y s", [](Tensor x, Tensor a, Tensor b, Scalar s) { return Tensor(x.addcdiv_(a, b, s)); });
  add("addcmul_out", "out x y y s", [](Tensor out, Tensor x, Tensor a, Tensor b, Scalar s) {
    return Tensor(torch::addcmul_out(out, x, a, b, s));
  });
  add("lerp", "x y s", [](Tensor x, Tensor y, Scalar s) { return torch::lerp(x, y, s); });
  add("lerp.Tensor", "x y y", [](Tensor x, Tensor y, Tensor w) { return torch::lerp(x, y, w); });
  add("Tensor.lerp_", "x y s", [](Tensor x, Tensor y, Scalar s) { return Tensor(x.lerp_(y, s)); });
  add("Tensor.fill_", "x s", [](Tensor x, Scalar s) { return Tensor(x.fill_(s)); });
  add("Tensor.fill_.Tensor", "x n0", [](Tensor x, Tensor v) { return Tensor(x.fill_(v)); });
  add("Tensor.zero_", "x", [](Tensor x) { return Tensor(x.zero_()); });
  add("Tensor.copy_", "x y", [](Tensor x, Tensor y) { return Tensor(x.copy_(y)); });
  add("Tensor.to", "x dtype", [](Tensor x, Dtype dtype) { return x.to(dtype); });
  add("clone", "x", [](Tensor x) { return torch::clone(x); });
  add("Tensor.detach", "x", [](Tensor x) { return x.detach(); });
  add("Tensor.item", "x1", [](Tensor x) { return x.item().toDouble(); });
  add("is_nonzero", "x", [](Tensor x) { return torch::is_nonzero(x); });
  add("isreal", "x", [](Tensor x) { return torch::isreal(x); });
  add("Tensor.type_as", "x y", [](Tensor x, Tensor y) { return x.type_as(y); });
}

}  // namespace

void add_pointwise() {
  unary();
  activations();
  binary();
  several();
}

}  // namespace differential
// clang-format on
