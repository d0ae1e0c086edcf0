// Products and distances.
#include "../table.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {

void add_linalg() {
  using Int = std::int64_t;
#define PRODUCT(name, words)                                                                                    \
  add(#name, words, [](Tensor a, Tensor b) { return torch::name(a, b); });                                      \
  add("Tensor." #name, words, [](Tensor a, Tensor b) { return a.name(b); });
#define PRODUCT_OUT(name, words) \
  add(#name "_out", "out " words, [](Tensor out, Tensor a, Tensor b) { return Tensor(torch::name##_out(out, a, b)); });
  PRODUCT(matmul, "@matmul") PRODUCT(mm, "@mm") PRODUCT(bmm, "@bmm") PRODUCT(mv, "@mv") PRODUCT(dot, "@dot")
  PRODUCT(outer, "vector vector") PRODUCT(ger, "vector vector") PRODUCT(vdot, "@dot") PRODUCT(inner, "@inner")
  PRODUCT(kron, "x y")
  PRODUCT_OUT(matmul, "@matmul") PRODUCT_OUT(mm, "@mm") PRODUCT_OUT(bmm, "@bmm") PRODUCT_OUT(mv, "@mv")
  PRODUCT_OUT(dot, "@dot") PRODUCT_OUT(outer, "vector vector")
  PRODUCT_OUT(ger, "vector vector") PRODUCT_OUT(vdot, "@dot") PRODUCT_OUT(inner, "@inner")
                 PRODUCT_OUT(kron, "x y")
#undef PRODUCT_OUT
#undef PRODUCT
#define ADDED(name, words)                                                                                         \
  add(#name, words " s s",                                                                                         \
      [](Tensor c, Tensor a, Tensor b, Scalar beta, Scalar alpha) { return torch::name(c, a, b, beta, alpha); });  \
  add("Tensor." #name "_", words " s s", [](Tensor c, Tensor a, Tensor b, Scalar beta, Scalar alpha) {             \
    return Tensor(c.name##_(a, b, beta, alpha));                                                                   \
  });
#define ADDED_OUT(name, words)                                                                                     \
  add(#name "_out", "out " words " s s", [](Tensor out, Tensor c, Tensor a, Tensor b, Scalar beta, Scalar alpha) { \
    return Tensor(torch::name##_out(out, c, a, b, beta, alpha));                                                   \
  });
  ADDED(addmm, "@addmm") ADDED(baddbmm, "@baddbmm") ADDED(addmv, "@addmv") ADDED(addr, "@addr") ADDED(addbmm, "@addbmm")
  ADDED_OUT(addmm, "@addmm") ADDED_OUT(baddbmm, "@baddbmm")
  ADDED_OUT(addmv, "@addmv") ADDED_OUT(addr, "@addr") ADDED_OUT(addbmm, "@addbmm")
#undef ADDED_OUT
#undef ADDED
  add("linear", "@linear", [](Tensor x, Tensor w, OptionalTensor b) { return torch::linear(x, w, b); });
  add("bilinear", "@bilinear",
      [](Tensor a, Tensor b, Tensor w, OptionalTensor c) { return torch::bilinear(a, b, w, c); });
  add("chain_matmul", "@chain", [](Tensors list) { return torch::chain_matmul(list); });
  add("linalg.multi_dot", "@chain", [](Tensors list) { return LINALG(multi_dot)(list); });
  add("matrix_power", "@power int(0..4)", [](Tensor x, Int n) { return torch::matrix_power(x, n); });
  add("tensordot", "@tensordot",
      [](Tensor a, Tensor b, Ints da, Ints db) { return torch::tensordot(a, b, da, db); });
  add("einsum", "@einsum", [](std::string equation, Tensors list) { return torch::einsum(equation, list); });
  add("cross", "@cross opt(dim)",
      [](Tensor a, Tensor b, std::optional<Int> dim) { return torch::cross(a, b, dim); });
  add("linalg.cross", "@cross dim", [](Tensor a, Tensor b, Int dim) { return LINALG(cross)(a, b, dim); });
  add("linalg.vecdot", "x e dim", [](Tensor a, Tensor b, Int dim) { return LINALG(vecdot)(a, b, dim); });
  add("linalg.norm", "x opt(s) opt(dims) b", [](Tensor x, OptionalScalar ord, OptionalInts dim, bool keep) {
    return LINALG(norm)(x, ord, dim, keep, std::nullopt);
  });
  add("linalg.matrix_norm", "x text(fro) dims b", [](Tensor x, std::string ord, Ints dim, bool keep) {
    return LINALG(matrix_norm)(x, ord, dim, keep);
  });
  add("cdist", "@cdist real(0.0|1.0|2.0|1.5|inf|3.0) opt(int(0..2))",
      [](Tensor a, Tensor b, double p, std::optional<Int> mode) { return torch::cdist(a, b, p, mode); });
  add("pdist", "matrix real(0.0|1.0|2.0|1.5|inf)", [](Tensor x, double p) { return torch::pdist(x, p); });
  add("pairwise_distance", "x y real(0.0|1.0|2.0|1.5|inf) real(1e-6|0.1) b",
      [](Tensor a, Tensor b, double p, double eps, bool keep) { return torch::pairwise_distance(a, b, p, eps, keep); });
  add("cosine_similarity", "x y dim real(1e-8|0.5)",
      [](Tensor a, Tensor b, Int dim, double eps) { return torch::cosine_similarity(a, b, dim, eps); });
}

}  // namespace differential
// clang-format on
