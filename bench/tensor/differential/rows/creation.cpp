// Tensors made of sizes and numbers.
#include "../table.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {

void add_creation() {
  using Int = std::int64_t;
  add("arange", "step step step opt(dtype)", [](Scalar a, Scalar b, Scalar step, std::optional<Dtype> dtype) {
    return dtype ? torch::arange(a, b, step, *dtype) : torch::arange(a, b, step);
  });
  add("linspace", "s s int(0..6) opt(dtype)", [](Scalar a, Scalar b, Int n, std::optional<Dtype> dtype) {
    return dtype ? torch::linspace(a, b, n, *dtype) : torch::linspace(a, b, n);
  });
  add("logspace", "s s int(0..6)", [](Scalar a, Scalar b, Int n) { return torch::logspace(a, b, n); });
  add("full", "sizes2 s opt(dtype)", [](Ints sizes, Scalar s, std::optional<Dtype> dtype) {
    return dtype ? torch::full(sizes, s, *dtype) : torch::full(sizes, s);
  });
  add("eye", "int(0..4) int(0..4)", [](Int n, Int m) { return torch::eye(n, m); });
  add("scalar_tensor", "s", [](Scalar s) { return torch::scalar_tensor(s); });
  add("zeros_like", "x", [](Tensor x) { return torch::zeros_like(x); });
  add("ones_like", "x", [](Tensor x) { return torch::ones_like(x); });
  add("full_like", "x s", [](Tensor x, Scalar s) { return torch::full_like(x, s); });
  add("zeros_like.dtype", "x dtype", [](Tensor x, Dtype dtype) { return torch::zeros_like(x, dtype); });
  add("Tensor.new_full", "x sizes2 s", [](Tensor x, Ints sizes, Scalar s) { return x.new_full(sizes, s); });
  add("Tensor.new_zeros", "x sizes2", [](Tensor x, Ints sizes) { return x.new_zeros(sizes); });
  add("full_out", "out sizes2 s", [](Tensor out, Ints sizes, Scalar s) { return Tensor(torch::full_out(out, sizes, s)); });
  add("arange_out", "out step step step", [](Tensor out, Scalar a, Scalar b, Scalar step) {
    return Tensor(torch::arange_out(out, a, b, step));
  });
  add("hann_window", "int(0..6) b", [](Int n, bool periodic) { return torch::hann_window(n, periodic); });
  add("hamming_window", "int(0..6) b", [](Int n, bool periodic) { return torch::hamming_window(n, periodic); });
  add("vander", "vector opt(int(0..4)) b",
      [](Tensor x, std::optional<Int> n, bool increasing) { return torch::vander(x, n, increasing); });
}

}  // namespace differential
// clang-format on
