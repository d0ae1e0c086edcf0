// The _out forms: a result goes into a tensor of the caller's, which is resized where its sizes differ. Each throws
// Error where an argument requires a gradient, unless the function has none anyway, and where `out` has not the dtype
// that the function asks for (detail::OutRule). Those of the rows of kernel/rows stand in pointwise.h.
#pragma once

#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/linalg/products.h>
#include <tenon/ops/pointwise/numeric.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/pointwise/special_functions.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/shape/tril_triu.h>
#include <tenon/ops/support/out_argument.h>

#include <utility>

namespace tenon {

/// name_out(out, …) of name(…), with what it asks of its arguments, a constant of detail::out_rules:
/// TENON_OUT(mm, kSame, (const Tensor& a, const Tensor& b), a, b).
#define TENON_OUT_PARAMETERS(...) __VA_ARGS__
#define TENON_OUT(name, rule, parameters, ...)                                                \
  inline Tensor& name##_out(Tensor& out, TENON_OUT_PARAMETERS parameters) {                   \
    const auto function = [](const auto&... arguments) { return tenon::name(arguments...); }; \
    return detail::into(detail::out_rules::rule, #name, out, function, __VA_ARGS__);          \
  }

TENON_OUT(bitwise_not, kSame, (const Tensor& self), self)
TENON_OUT(where, kSame, (const Tensor& condition, const Tensor& self, const Tensor& other), condition, self, other)
TENON_OUT(clamp, kSame,
          (const Tensor& self, const std::optional<Scalar>& low, const std::optional<Scalar>& high = std::nullopt),
          self, low, high)
TENON_OUT(clamp_min, kSame, (const Tensor& self, const Scalar& low), self, low)
TENON_OUT(clamp_max, kSame, (const Tensor& self, const Scalar& high), self, high)
TENON_OUT(addcmul, kCastable, (const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value = 1), self, a,
          b, value)
TENON_OUT(addcdiv, kCastable, (const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value = 1), self, a,
          b, value)
TENON_OUT(lerp, kCastable, (const Tensor& self, const Tensor& end, const Scalar& weight), self, end, weight)
TENON_OUT(lerp, kCastable, (const Tensor& self, const Tensor& end, const Tensor& weight), self, end, weight)

#define TENON_OUT_OF_TWO(name, rule) TENON_OUT(name, rule, (const Tensor& self, const Tensor& other), self, other)
TENON_OUT_OF_TWO(gcd, kCastable)
TENON_OUT_OF_TWO(lcm, kCastable)
TENON_OUT_OF_TWO(xlogy, kCastable)
TENON_OUT_OF_TWO(special_xlog1py, kCastable)
TENON_OUT_OF_TWO(float_power, kSame)
TENON_OUT_OF_TWO(heaviside, kSame)
TENON_OUT_OF_TWO(fmax, kCastable)
TENON_OUT_OF_TWO(fmin, kCastable)
TENON_OUT_OF_TWO(nextafter, kCastable)
TENON_OUT_OF_TWO(bitwise_left_shift, kCastable)
TENON_OUT_OF_TWO(bitwise_right_shift, kCastable)
TENON_OUT_OF_TWO(ger, kCastable)
TENON_OUT_OF_TWO(vdot, kSame)
TENON_OUT_OF_TWO(inner, kCastable)
#undef TENON_OUT_OF_TWO
TENON_OUT(float_power, kSame, (const Tensor& self, const Scalar& exponent), self, exponent)
TENON_OUT(mvlgamma, kCastable, (const Tensor& self, std::int64_t p), self, p)
TENON_OUT(special_erfcx, kCastable, (const Tensor& self), self)
TENON_OUT(special_log_ndtr, kCastable, (const Tensor& self), self)
TENON_OUT(special_ndtri, kCastable, (const Tensor& self), self)

TENON_OUT(mm, kSame, (const Tensor& self, const Tensor& other), self, other)
TENON_OUT(bmm, kSame, (const Tensor& self, const Tensor& other), self, other)
TENON_OUT(mv, kSame, (const Tensor& self, const Tensor& other), self, other)
TENON_OUT(dot, kSame, (const Tensor& self, const Tensor& other), self, other)
TENON_OUT(outer, kCastable, (const Tensor& self, const Tensor& other), self, other)
TENON_OUT(matmul, kSame, (const Tensor& self, const Tensor& other), self, other)
TENON_OUT(addmm, kSame,
          (const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1), self,
          a, b, beta, alpha)
TENON_OUT(baddbmm, kSame,
          (const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1), self,
          a, b, beta, alpha)

TENON_OUT(addbmm, kSame,
          (const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1), self,
          a, b, beta, alpha)
TENON_OUT(addmv, kSame,
          (const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta = 1, const Scalar& alpha = 1),
          self, mat, vec, beta, alpha)
TENON_OUT(addr, kCastable,
          (const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1), self,
          a, b, beta, alpha)

TENON_OUT(cat, kCastable, (TensorList tensors, std::int64_t dim = 0), tensors, dim)
TENON_OUT(stack, kCastable, (TensorList tensors, std::int64_t dim = 0), tensors, dim)
TENON_OUT(hstack, kCastable, (TensorList tensors), tensors)
TENON_OUT(vstack, kCastable, (TensorList tensors), tensors)
TENON_OUT(tril, kSame, (const Tensor& self, std::int64_t diagonal = 0), self, diagonal)
TENON_OUT(triu, kSame, (const Tensor& self, std::int64_t diagonal = 0), self, diagonal)
TENON_OUT(diag, kSame, (const Tensor& self, std::int64_t diagonal = 0), self, diagonal)
TENON_OUT(index_select, kSame, (const Tensor& self, std::int64_t dim, const Tensor& index), self, dim, index)
TENON_OUT(gather, kSame, (const Tensor& self, std::int64_t dim, const Tensor& index), self, dim, index)
TENON_OUT(masked_select, kSame, (const Tensor& self, const Tensor& mask), self, mask)
TENON_OUT(nonzero, kPositions, (const Tensor& self), self)
TENON_OUT(take, kSame, (const Tensor& self, const Tensor& index), self, index)

#undef TENON_OUT
#undef TENON_OUT_PARAMETERS

/// As kron(), into `out`, which is contiguous where it has to be resized.
inline Tensor& kron_out(Tensor& out, const Tensor& self, const Tensor& other) {
  const auto function = [](const Tensor& a, const Tensor& b) { return tenon::kron(a, b).contiguous(); };
  return detail::into(detail::out_rules::kCastable, "kron", out, function, self, other);
}

// Reductions and scans.
#define TENON_AFTER_SELF(...) __VA_OPT__(, ) __VA_ARGS__
#define TENON_REDUCTION(name, rule, parameters, ...)                                                               \
  inline Tensor& name##_out(Tensor& out, const Tensor& self TENON_AFTER_SELF parameters) {                         \
    const auto function = [&](const Tensor& x) { return x.name(__VA_ARGS__); };                                    \
    return detail::into_reduction(detail::out_rules::rule, #name, out, function, self __VA_OPT__(, ) __VA_ARGS__); \
  }
#include <tenon/tensor/reduction_rows.inl>
#undef TENON_AFTER_SELF

/// As max(dim), the values into `values` and their positions into `indices` (int64), both resized where their sizes
/// differ. Throws Error for other dtypes; so for the three below.
inline std::tuple<Tensor&, Tensor&> max_out(Tensor& values, Tensor& indices, const Tensor& self, std::int64_t dim,
                                            bool keepdim = false) {
  return detail::into_both(
      detail::out_rules::kSame, "max", values, indices, [&](const Tensor& x) { return x.max(dim, keepdim); }, self);
}
/// As min(dim), into `values` and `indices`.
inline std::tuple<Tensor&, Tensor&> min_out(Tensor& values, Tensor& indices, const Tensor& self, std::int64_t dim,
                                            bool keepdim = false) {
  return detail::into_both(
      detail::out_rules::kSame, "min", values, indices, [&](const Tensor& x) { return x.min(dim, keepdim); }, self);
}
/// As sort(), into `values` and `indices`.
inline std::tuple<Tensor&, Tensor&> sort_out(Tensor& values, Tensor& indices, const Tensor& self, std::int64_t dim = -1,
                                             bool descending = false) {
  return detail::into_both(
      detail::out_rules::kSame, "sort", values, indices, [&](const Tensor& x) { return x.sort(dim, descending); },
      self);
}
/// As topk(), into `values` and `indices`.
inline std::tuple<Tensor&, Tensor&> topk_out(Tensor& values, Tensor& indices, const Tensor& self, std::int64_t k,
                                             std::int64_t dim = -1, bool largest = true, bool sorted = true) {
  return detail::into_both(
      detail::out_rules::kSame, "topk", values, indices,
      [&](const Tensor& x) { return x.topk(k, dim, largest, sorted); }, self);
}

// Factories: `out` decides dtype and device, and is resized where its sizes differ.
/// As zeros(), into `out`.
inline Tensor& zeros_out(Tensor& out, IntArrayRef sizes) {
  return detail::write_out(detail::out_rules::kCastable, "zeros", out, zeros(sizes, out.options()));
}
/// As ones(), into `out`.
inline Tensor& ones_out(Tensor& out, IntArrayRef sizes) {
  return detail::write_out(detail::out_rules::kCastable, "ones", out, ones(sizes, out.options()));
}
/// As full(), into `out`. Throws Error for a value that its dtype cannot hold.
inline Tensor& full_out(Tensor& out, IntArrayRef sizes, const Scalar& value) {
  return detail::write_out(detail::out_rules::kCastable, "full", out, full(sizes, value, out.options()));
}
/// As eye(), into `out`.
inline Tensor& eye_out(Tensor& out, std::int64_t n) {
  return detail::write_out(detail::out_rules::kCastable, "eye", out, eye(n, out.options()));
}
inline Tensor& eye_out(Tensor& out, std::int64_t n, std::int64_t m) {
  return detail::write_out(detail::out_rules::kCastable, "eye", out, eye(n, m, out.options()));
}
namespace detail {

/// A sequence of as many elements as `out` has goes into its sizes, as in PyTorch.
inline Tensor& write_sequence(const char* op, Tensor& out, const Tensor& sequence) {
  const bool fits = out.numel() == sequence.numel();
  return write_out(out_rules::kCastable, op, out, fits ? sequence.view(out.sizes()) : sequence);
}

}  // namespace detail

/// As arange(), into `out`, which keeps its sizes where it has as many elements and is resized otherwise; its dtype
/// counts.
inline Tensor& arange_out(Tensor& out, const Scalar& end) {
  return detail::write_sequence("arange", out, arange(end, out.options()));
}
inline Tensor& arange_out(Tensor& out, const Scalar& start, const Scalar& end, const Scalar& step = 1) {
  return detail::write_sequence("arange", out, arange(start, end, step, out.options()));
}
/// As linspace(), into `out`, as arange_out().
inline Tensor& linspace_out(Tensor& out, const Scalar& start, const Scalar& end, std::int64_t steps = 100) {
  return detail::write_sequence("linspace", out, linspace(start, end, steps, out.options()));
}
/// As rand(), into `out`.
inline Tensor& rand_out(Tensor& out, IntArrayRef sizes) {
  return detail::write_out(detail::out_rules::kCastable, "rand", out, rand(sizes, out.options()));
}
/// As randn(), into `out`.
inline Tensor& randn_out(Tensor& out, IntArrayRef sizes) {
  return detail::write_out(detail::out_rules::kCastable, "randn", out, randn(sizes, out.options()));
}

}  // namespace tenon
