// Reductions and scans: the functions of tensor/reduction_rows.inl, and those with a signature of their own.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

#define TENON_AFTER_SELF(...) __VA_OPT__(, ) __VA_ARGS__
#define TENON_REDUCTION(name, out, parameters, ...)                                                                    \
  /** As its row says, also on dtypes and errors. A dim may be negative: it counts from the end. A dim that is reduced \
   * is left out of the result, or with keepdim has size 1. Throws Error for a dim out of range, or named twice. */    \
  inline Tensor name(const Tensor& self TENON_AFTER_SELF parameters) { return self.name(__VA_ARGS__); }
#include <tenon/tensor/reduction_rows.inl>
#undef TENON_AFTER_SELF

/// The largest element of all (equal ones share the gradient); or the largest along `dim` with the position of the
/// first such (int64). Where an element is NaN so is the result, at the first NaN. Throws Error where there is no
/// element.
inline Tensor max(const Tensor& self) { return self.max(); }
inline std::tuple<Tensor, Tensor> max(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.max(dim, keepdim);
}
/// The smallest element of all, or along `dim` with the position of the first such (int64), as max(). Throws Error
/// where there is no element.
inline Tensor min(const Tensor& self) { return self.min(); }
inline std::tuple<Tensor, Tensor> min(const Tensor& self, std::int64_t dim, bool keepdim = false) {
  return self.min(dim, keepdim);
}
/// The variance along one dim, divided by n - 1: NaN where n is 1. Throws Error for a dtype that is not floating.
inline Tensor var(const Tensor& self, int dim) { return self.var(dim); }
/// The standard deviation along one dim, the root of var(). Throws Error for a dtype that is not floating.
inline Tensor std(const Tensor& self, int dim) { return self.std(dim); }
/// Variance and mean, of all elements or over `dim`: see var() and mean(). Throws Error for a dtype that is not
/// floating.
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                              bool keepdim = false);
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased = true);
TENON_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int dim);
/// Standard deviation and mean, of all elements or over `dim`: see std() and mean(). Throws Error for a dtype that is
/// not floating.
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                              bool keepdim = false);
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased = true);
TENON_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int dim);

}  // namespace tenon
