// Reductions and scans: the functions of tensor/reduction_rows.inl, and those with a signature of their own.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

#define TENON_AFTER_SELF(...) __VA_OPT__(, ) __VA_ARGS__
#define TENON_REDUCTION(name, parameters, ...) \
  inline Tensor name(const Tensor& self TENON_AFTER_SELF parameters) { return self.name(__VA_ARGS__); }
#include <tenon/tensor/reduction_rows.inl>
#undef TENON_AFTER_SELF

/// The extremes of all elements, or along `dim` with the place of the first one; NaN wins.
inline Tensor max(const Tensor& self) { return self.max(); }
inline std::tuple<Tensor, Tensor> max(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.max(dim, keepdim);
}
inline Tensor min(const Tensor& self) { return self.min(); }
inline std::tuple<Tensor, Tensor> min(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.min(dim, keepdim);
}
/// The variance over `dim` (all if none), divided by n - 1, or by n if `unbiased` is off. Floating dtypes only.
inline Tensor var(const Tensor& self, int dim) { return self.var(dim); }
/// The standard deviation over `dim` (all if none), divided by n - 1, or by n if `unbiased` is off. Floating dtypes
/// only.
inline Tensor std(const Tensor& self, int dim) { return self.std(dim); }
/// Both at once.
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                              bool keepdim = false);
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased = true);
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int dim);
/// Standard deviation and mean: see std() and mean().
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                              bool keepdim = false);
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased = true);
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int dim);

}  // namespace tenon
