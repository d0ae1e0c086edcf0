// Special functions, and functions that came later than their family: powers in float64, copies with one view written,
// covariances.
#include "../table.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {

#define ALIAS(name) add("special_" #name, "x", [](Tensor x) { return torch::special_##name(x); });
#define FUNCTION(name)                                                                              \
  ALIAS(name)                                                                                       \
  add("special." #name, "x", [](Tensor x) { return torch::special::name(x); });                     \
  add("special_" #name "_out", "out x", [](Tensor out, Tensor x) { return Tensor(torch::special_##name##_out(out, x)); });

void add_special() {
  using Int = std::int64_t;
  FUNCTION(erfcx) FUNCTION(log_ndtr) FUNCTION(ndtri)
  add("special_ndtri.unit", "unit", [](Tensor x) { return torch::special_ndtri(x); });
  ALIAS(digamma) ALIAS(erf) ALIAS(erfc) ALIAS(erfinv) ALIAS(exp2) ALIAS(expit) ALIAS(expm1) ALIAS(gammaln) ALIAS(log1p)
  ALIAS(psi) ALIAS(sinc)
  add("special_polygamma", "int(0..3) x", [](Int n, Tensor x) { return torch::special_polygamma(n, x); });
  add("special_logit", "x opt(real(0.01|0.25))", [](Tensor x, std::optional<double> eps) { return torch::special_logit(x, eps); });
  add("special_round", "x int(-1..2)", [](Tensor x, Int n) { return torch::special_round(x, n); });
  add("special_multigammaln", "x int(0..4)", [](Tensor x, Int p) { return torch::special_multigammaln(x, p); });
  add("mvlgamma", "x int(1..3)", [](Tensor x, Int p) { return torch::mvlgamma(x, p); });
  add("special_logsumexp", "x dims b", [](Tensor x, Ints dims, bool keep) { return torch::special_logsumexp(x, dims, keep); });
  add("special_softmax", "x dim opt(dtype)", [](Tensor x, Int dim, std::optional<Dtype> dtype) { return torch::special_softmax(x, dim, dtype); });
  add("special_log_softmax", "x dim opt(dtype)", [](Tensor x, Int dim, std::optional<Dtype> dtype) { return torch::special_log_softmax(x, dim, dtype); });
  add("special_xlogy", "x y", [](Tensor x, Tensor y) { return torch::special_xlogy(x, y); });
  add("special_xlog1py", "x y", [](Tensor x, Tensor y) { return torch::special_xlog1py(x, y); });
  add("special_xlog1py.Scalar", "x s", [](Tensor x, Scalar s) { return torch::special_xlog1py(x, s); });
  add("special_xlog1py.left", "x s", [](Tensor x, Scalar s) { return torch::special::xlog1py(s, x); });
  add("special_xlog1py_out", "out x y", [](Tensor out, Tensor x, Tensor y) { return Tensor(torch::special_xlog1py_out(out, x, y)); });
  add("float_power", "x y", [](Tensor x, Tensor y) { return torch::float_power(x, y); });
  add("float_power.Scalar", "x s", [](Tensor x, Scalar s) { return torch::float_power(x, s); });
  add("float_power.left", "x s", [](Tensor x, Scalar s) { return torch::float_power(s, x); });
  add("float_power_out", "out x y", [](Tensor out, Tensor x, Tensor y) { return Tensor(torch::float_power_out(out, x, y)); });
  add("slice_scatter", "@slice_scatter", [](Tensor x, Tensor source, Int dim, std::optional<Int> a, std::optional<Int> b, Int step) {
    return torch::slice_scatter(x, source, dim, a, b, step);
  });
  add("select_scatter", "@select_scatter", [](Tensor x, Tensor source, Int dim, Int at) { return torch::select_scatter(x, source, dim, at); });
  add("diagonal_scatter", "@diagonal_scatter", [](Tensor x, Tensor source, Int offset, Int a, Int b) {
    return torch::diagonal_scatter(x, source, offset, a, b);
  });
  add("block_diag", "blocks", [](Tensors blocks) { return torch::block_diag(blocks); });
  add("cov", "@cov", [](Tensor x, Int correction, std::optional<Tensor> f, std::optional<Tensor> a) { return torch::cov(x, correction, f, a); });
  add("corrcoef", "@cov", [](Tensor x, Int, std::optional<Tensor>, std::optional<Tensor>) { return torch::corrcoef(x); });
  add("randint_like", "x int(1..3)", [](Tensor x, Int high) { return torch::randint_like(x, high).mul_(0); });
  add("randint_like.low", "x int(-2..1) int(0..300)", [](Tensor x, Int low, Int high) { return torch::randint_like(x, low, high).mul_(0); });
}

}  // namespace differential
// clang-format on
