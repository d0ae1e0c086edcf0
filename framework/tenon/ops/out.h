// The _out forms: a result goes into a tensor of the caller's, which is resized where its sizes differ. Each throws
// Error where an argument requires a gradient, unless the function has none anyway, and where `out` has not the dtype
// that the function asks for (out_rule()). Those of the rows of kernel/rows stand in pointwise.h.
#pragma once

#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/out_argument.h>

#include <utility>

namespace tenon {

<<<<<<< HEAD
/// name_out(out, …) of name(…): TENON_OUT(mm, (const Tensor& a, const Tensor& b), a, b).
#define TENON_OUT_PARAMETERS(...) __VA_ARGS__
#define TENON_OUT(name, parameters, ...) inline Tensor& name##_out(Tensor& out, TENON_OUT_PARAMETERS parameters) {                   \
=======
namespace detail {

/// What an _out form asks of its out.
struct OutRule {
  const char* op;
  /// The dtype: one that the result's can be cast to; the result's own; or, for truth values, kBool or kByte.
  enum class Dtype : std::uint8_t { kCastable, kSame, kTruth } dtype = Dtype::kCastable;
  /// Arguments that require a gradient are refused, since none would flow. A function without one takes them.
  bool differentiable = true;
};

TENON_API void check_out_argument(const OutRule& rule, const Tensor& argument);
/// `out` takes the sizes and the values of `result`.
TENON_API Tensor& write_out(const OutRule& rule, Tensor& out, const Tensor& result);

template <class Argument>
void check_out(const OutRule& rule, const Argument& argument) {
  if constexpr (std::same_as<Argument, Tensor>) {
    check_out_argument(rule, argument);
  } else if constexpr (std::same_as<Argument, TensorList>) {
    for (const Tensor& one : argument) check_out_argument(rule, one);
  }
}

/// function(arguments...) into `out`.
template <class Function, class... Arguments>
Tensor& into(const OutRule& rule, Tensor& out, Function function, const Arguments&... arguments) {
  check_out_argument(rule, out);
  (check_out(rule, arguments), ...);
  NoGradGuard no_grad;
  return write_out(rule, out, function(arguments...));
}

/// A function of two results, values and places, into `first` and `second`.
template <class Function, class... Arguments>
std::tuple<Tensor&, Tensor&> into_both(const char* op, Tensor& first, Tensor& second, Function function,
                                       const Arguments&... arguments) {
  const OutRule rule{op, OutRule::Dtype::kSame};
  check_out_argument(rule, first);
  check_out_argument(rule, second);
  (check_out(rule, arguments), ...);
  NoGradGuard no_grad;
  const auto [a, b] = function(arguments...);
  return {write_out(rule, first, a), write_out(rule, second, b)};
}

/// Unary functions whose out must have the result's dtype: those that keep the dtype of integers, and frac.
constexpr bool keeps_dtype(std::string_view name) {
  for (const std::string_view one : {"abs", "neg", "sign", "ceil", "floor", "round", "trunc", "frac", "relu"}) {
    if (name == one) return true;
  }
  return false;
}
/// What is summed up, is so in the dtype of `out`.
inline std::optional<Dtype> dtype_in(const Tensor& out, std::optional<Dtype> dtype) {
  return dtype ? dtype : out.scalar_type();
}
inline std::optional<Dtype> mean_dtype_in(const Tensor& out, const Tensor& self, std::optional<Dtype> dtype) {
  return self.is_floating_point() && out.is_floating_point() ? dtype_in(out, dtype) : dtype;
}

}  // namespace detail

/// name_out(out, …) of name(…): TENON_OUT_RULE(mm, kSame, true, (const Tensor& a, const Tensor& b), a, b).
#define TENON_OUT_BARE(...) __VA_ARGS__
#define TENON_OUT_RULE(name, dtype, differentiable, parameters, ...) \
  inline Tensor& name##_out(Tensor& out, TENON_OUT_BARE parameters) {                         \
>>>>>>> e6a4616 (Results go into out under the rules of their functions: what has no gradient takes any input, and dtypes are not cast in silence; decimals of 16-bit numbers are rounded in 32)
const auto function = [](const auto&... arguments) { return tenon::name(arguments...); };
constexpr detail::OutRule rule{#name, detail::OutRule::Dtype::dtype, differentiable};
return detail::into(rule, out, function, __VA_ARGS__);
}
#define TENON_OUT(name, parameters, ...) TENON_OUT_RULE(name, kCastable, true, parameters, __VA_ARGS__)
#define TENON_OUT_SAME(name, parameters, ...) TENON_OUT_RULE(name, kSame, true, parameters, __VA_ARGS__)
#define TENON_OUT_UNARY(name)                                                                                         \
  inline Tensor& name##_out(Tensor& out, const Tensor& self) {                                                        \
    const auto function = [](const Tensor& x) { return tenon::name(x); };                                             \
    return detail::into(                                                                                              \
        {#name, detail::keeps_dtype(#name) ? detail::OutRule::Dtype::kSame : detail::OutRule::Dtype::kCastable}, out, \
        function, self);                                                                                              \
  }
<<<<<<< HEAD

    TENON_OUT(bitwise_not, (const Tensor& self), self) TENON_OUT(
        where, (const Tensor& condition, const Tensor& self, const Tensor& other), condition, self,
        other) TENON_OUT(clamp,
                         (const Tensor& self, const std::optional<Scalar>& low,
                          const std::optional<Scalar>& high = std::nullopt),
                         self, low,
                         high) TENON_OUT(clamp_min, (const Tensor& self, const Scalar& low), self,
                                         low) TENON_OUT(clamp_max, (const Tensor& self, const Scalar& high), self, high)
=======
#define TENON_OUT_BINARY(name)                                            \
  TENON_OUT(name, (const Tensor& self, const Tensor& other), self, other) \
  TENON_OUT(name, (const Tensor& self, const Scalar& other), self, other)
#define TENON_OUT_COMPARISON(name)                                                               \
  TENON_OUT_RULE(name, kCastable, false, (const Tensor& self, const Tensor& other), self, other) \
  TENON_OUT_RULE(name, kCastable, false, (const Tensor& self, const Scalar& other), self, other)

        TENON_UNARY_METHODS(
            TENON_OUT_UNARY) TENON_COMPARISON_METHODS(TENON_OUT_COMPARISON) TENON_OUT_BINARY(pow) TENON_OUT_BINARY(fmod) TENON_OUT_BINARY(remainder) TENON_OUT_BINARY(floor_divide) TENON_OUT_BINARY(bitwise_and) TENON_OUT_BINARY(bitwise_or) TENON_OUT_BINARY(bitwise_xor) TENON_OUT(maximum,
                                                                                                                                                                                                                                                                                       (
                                                                                                                                                                                                                                                                                           const Tensor& self, const Tensor&
                                                                                                                                                                                                                                                                                                                   other),
                                                                                                                                                                                                                                                                                       self, other) TENON_OUT(minimum,
                                                                                                                                                                                                                                                                                                              (const Tensor& self, const Tensor& other), self, other) TENON_OUT(atan2,
                                                                                                                                                                                                                                                                                                                                                                                (const Tensor&
                                                                                                                                                                                                                                                                                                                                                                                     self,
                                                                                                                                                                                                                                                                                                                                                                                 const Tensor&
                                                                                                                                                                                                                                                                                                                                                                                     other),
                                                                                                                                                                                                                                                                                                                                                                                self, other) TENON_OUT(hypot, (const Tensor& self, const Tensor& other), self, other) TENON_OUT(logaddexp,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                (
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    const Tensor&
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        self,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    const Tensor&
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        other),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                self,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                other) TENON_OUT(copysign,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 (const Tensor& self, const Tensor& other), self,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 other) TENON_OUT_RULE(logical_not,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                       kCastable,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                       false,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                       (const Tensor&
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            self),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                       self) TENON_OUT_SAME(bitwise_not, (const Tensor& self), self) TENON_OUT_SAME(where,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    (const Tensor& condition,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     const Tensor& self, const Tensor& other),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    condition,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    self,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    other)
            TENON_OUT_SAME(clamp, (const Tensor& self, const std::optional<Scalar>& low, const std::optional<Scalar>& high = std::nullopt), self, low, high) TENON_OUT_SAME(
                clamp_min, (const Tensor& self, const Scalar& low),
                self, low) TENON_OUT_SAME(clamp_max, (const Tensor& self, const Scalar& high), self, high)
>>>>>>> e6a4616 (Results go into out under the rules of their functions: what has no gradient takes any input, and dtypes are not cast in silence; decimals of 16-bit numbers are rounded in 32)
                TENON_OUT(addcmul, (const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value = 1), self, a, b, value) TENON_OUT(
                    addcdiv, (const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value = 1),
                    self, a, b,
                    value) TENON_OUT(lerp, (const Tensor& self, const Tensor& end, const Scalar& weight), self, end, weight)
                    TENON_OUT_SAME(lerp, (const Tensor& self, const Tensor& end, const Tensor& weight), self, end,
                                   weight)

                        TENON_OUT_SAME(mm, (const Tensor& self, const Tensor& other), self, other) TENON_OUT_SAME(
                            bmm, (const Tensor& self, const Tensor& other),
                            self, other) TENON_OUT_SAME(mv, (const Tensor& self, const Tensor& other), self, other)
                            TENON_OUT_SAME(
                                dot, (const Tensor& self, const Tensor& other),
                                self, other) TENON_OUT(outer, (const Tensor& self, const Tensor& other), self, other)
                                TENON_OUT_SAME(matmul, (const Tensor& self, const Tensor& other), self, other) TENON_OUT_SAME(
                                    addmm,
                                    (const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                                     const Scalar& alpha = 1),
                                    self, a, b,
                                    beta, alpha)
                                    TENON_OUT_SAME(
                                        baddbmm,
                                        (const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                                         const Scalar& alpha = 1),
                                        self, a, b,
                                        beta, alpha)

                                        TENON_OUT(cat, (TensorList tensors, std::int64_t dim = 0), tensors, dim) TENON_OUT(
                                            stack, (TensorList tensors, std::int64_t dim = 0),
                                            tensors,
                                            dim) TENON_OUT(hstack, (TensorList tensors),
                                                           tensors) TENON_OUT(vstack, (TensorList tensors), tensors)
                                            TENON_OUT_SAME(tril, (const Tensor& self, std::int64_t diagonal = 0), self, diagonal) TENON_OUT_SAME(
                                                triu, (const Tensor& self, std::int64_t diagonal = 0),
                                                self, diagonal)
                                                TENON_OUT_SAME(diag, (const Tensor& self, std::int64_t diagonal = 0), self, diagonal) TENON_OUT_SAME(
                                                    index_select,
                                                    (const Tensor& self, std::int64_t dim, const Tensor& index),
                                                    self, dim,
                                                    index) TENON_OUT_SAME(gather, (const Tensor& self, std::int64_t dim, const Tensor& index), self, dim,
                                                                          index)
                                                    TENON_OUT_SAME(masked_select, (const Tensor& self, const Tensor& mask), self, mask) TENON_OUT_RULE(
                                                        nonzero, kSame,
                                                        false, (const Tensor& self),
                                                        self) TENON_OUT_SAME(take, (const Tensor& self, const Tensor& index), self, index)

<<<<<<< HEAD
#undef TENON_OUT
#undef TENON_OUT_PARAMETERS
                                                        ======= TENON_OUT_SAME(
                                                            sum,
                                                            (const Tensor& self, OptionalIntArrayRef dim,
                                                             bool keepdim =
                                                                 false,
                                                             std::optional<Dtype> dtype =
                                                                 std::nullopt),
                                                            self, dim,
                                                            keepdim, detail::dtype_in(out, dtype))
                                                            TENON_OUT(
                                                                mean,
                                                                (const Tensor& self, OptionalIntArrayRef dim,
                                                                 bool keepdim =
                                                                     false,
                                                                 std::optional<Dtype> dtype =
                                                                     std::nullopt),
                                                                self, dim,
                                                                keepdim, detail::mean_dtype_in(out, self, dtype))
                                                                TENON_OUT_SAME(
                                                                    prod,
                                                                    (const Tensor& self, std::int64_t dim,
                                                                     bool keepdim =
                                                                         false,
                                                                     std::optional<Dtype> dtype = std::nullopt),
                                                                    self, dim,
                                                                    keepdim, detail::dtype_in(out, dtype))
                                                                    TENON_OUT(
                                                                        var,
                                                                        (const Tensor& self, OptionalIntArrayRef dim,
                                                                         bool unbiased,
                                                                         bool keepdim =
                                                                             false),
                                                                        self, dim, unbiased, keepdim)
                                                                        TENON_OUT(
                                                                            std,
                                                                            (const Tensor& self,
                                                                             OptionalIntArrayRef
                                                                                 dim,
                                                                             bool unbiased,
                                                                             bool keepdim =
                                                                                 false),
                                                                            self, dim, unbiased, keepdim)
                                                                            TENON_OUT_SAME(
                                                                                norm,
                                                                                (
                                                                                    const Tensor& self,
                                                                                    const std::optional<Scalar>&
                                                                                        p,
                                                                                    IntArrayRef
                                                                                        dim,
                                                                                    bool
                                                                                        keepdim = false),
                                                                                self, p, dim, keepdim)
                                                                                TENON_OUT_SAME(
                                                                                    amax,
                                                                                    (const Tensor& self,
                                                                                     IntArrayRef
                                                                                         dim = {},
                                                                                     bool keepdim =
                                                                                         false),
                                                                                    self, dim, keepdim)
                                                                                    TENON_OUT_SAME(
                                                                                        amin,
                                                                                        (const Tensor& self,
                                                                                         IntArrayRef
                                                                                             dim = {},
                                                                                         bool keepdim =
                                                                                             false),
                                                                                        self, dim, keepdim)
                                                                                        TENON_OUT_RULE(
                                                                                            argmax,
                                                                                            kSame, false,
                                                                                            (const Tensor& self,
                                                                                             std::optional<std::int64_t>
                                                                                                 dim = std::nullopt,
                                                                                             bool keepdim =
                                                                                                 false),
                                                                                            self, dim, keepdim)
                                                                                            TENON_OUT_RULE(
                                                                                                argmin,
                                                                                                kSame, false,
                                                                                                (const Tensor& self,
                                                                                                 std::optional<
                                                                                                     std::int64_t>
                                                                                                     dim = std::nullopt,
                                                                                                 bool keepdim =
                                                                                                     false),
                                                                                                self, dim, keepdim)
                                                                                                TENON_OUT_RULE(
                                                                                                    any, kTruth, false,
                                                                                                    (const Tensor& self,
                                                                                                     std::int64_t dim,
                                                                                                     bool keepdim =
                                                                                                         false),
                                                                                                    self, dim, keepdim)
                                                                                                    TENON_OUT_RULE(
                                                                                                        all, kTruth,
                                                                                                        false,
                                                                                                        (const Tensor&
                                                                                                             self,
                                                                                                         std::int64_t
                                                                                                             dim,
                                                                                                         bool keepdim =
                                                                                                             false),
                                                                                                        self, dim,
                                                                                                        keepdim)
                                                                                                        TENON_OUT_SAME(
                                                                                                            cumsum,
                                                                                                            (const Tensor&
                                                                                                                 self,
                                                                                                             std::int64_t
                                                                                                                 dim,
                                                                                                             std::optional<Dtype> dtype =
                                                                                                                 std::nullopt),
                                                                                                            self, dim,
                                                                                                            detail::
                                                                                                                dtype_in(
                                                                                                                    out,
                                                                                                                    dtype))
                                                                                                            TENON_OUT_SAME(
                                                                                                                cumprod,
                                                                                                                (const Tensor&
                                                                                                                     self,
                                                                                                                 std::int64_t
                                                                                                                     dim,
                                                                                                                 std::optional<Dtype> dtype =
                                                                                                                     std::nullopt),
                                                                                                                self,
                                                                                                                dim,
                                                                                                                detail::
                                                                                                                    dtype_in(
                                                                                                                        out,
                                                                                                                        dtype))
                                                                                                                TENON_OUT(
                                                                                                                    logsumexp,
                                                                                                                    (const Tensor&
                                                                                                                         self,
                                                                                                                     IntArrayRef
                                                                                                                         dim,
                                                                                                                     bool keepdim =
                                                                                                                         false),
                                                                                                                    self,
                                                                                                                    dim,
                                                                                                                    keepdim)
                                                                                                                    TENON_OUT_SAME(
                                                                                                                        softmax,
                                                                                                                        (const Tensor&
                                                                                                                             self,
                                                                                                                         std::int64_t
                                                                                                                             dim,
                                                                                                                         std::optional<Dtype> dtype =
                                                                                                                             std::
                                                                                                                                 nullopt),
                                                                                                                        self,
                                                                                                                        dim,
                                                                                                                        dtype)
                                                                                                                        TENON_OUT_SAME(
                                                                                                                            log_softmax,
                                                                                                                            (const Tensor&
                                                                                                                                 self,
                                                                                                                             std::int64_t
                                                                                                                                 dim,
                                                                                                                             std::optional<
                                                                                                                                 Dtype>
                                                                                                                                 dtype = std::
                                                                                                                                     nullopt),
                                                                                                                            self,
                                                                                                                            dim,
                                                                                                                            dtype)
#undef TENON_OUT_COMPARISON
#undef TENON_OUT_BINARY
#undef TENON_OUT_UNARY
#undef TENON_OUT_SAME
#undef TENON_OUT
#undef TENON_OUT_RULE
#undef TENON_OUT_BARE
                                                                                                                            >>>>>>> e6a4616 (Results go into out under the rules of their functions: what has no gradient takes any input, and dtypes are not cast in silence; decimals of 16-bit numbers are rounded in 32)

// Reductions and scans.
#define TENON_AFTER_SELF(...) __VA_OPT__(, ) __VA_ARGS__
#define TENON_REDUCTION(name, parameters, ...)                                             \
  inline Tensor& name##_out(Tensor& out, const Tensor& self TENON_AFTER_SELF parameters) { \
    const auto function = [&](const Tensor& x) { return x.name(__VA_ARGS__); };            \
    return detail::into_reduction(#name, out, function, self __VA_OPT__(, ) __VA_ARGS__);  \
  }
#include <tenon/tensor/reduction_rows.inl>
#undef TENON_AFTER_SELF

    /// Values and places, each into a tensor of the caller's.
    inline std::tuple<Tensor&, Tensor&> max_out(Tensor& values, Tensor& indices, const Tensor& self, std::int64_t dim,
                                                bool keepdim = false) {
  return detail::into_both(
      "max", values, indices, [&](const Tensor& x) { return x.max(dim, keepdim); }, self);
}
/// As min(dim), into `values` and `indices`.
inline std::tuple<Tensor&, Tensor&> min_out(Tensor& values, Tensor& indices, const Tensor& self, std::int64_t dim,
                                            bool keepdim = false) {
  return detail::into_both(
      "min", values, indices, [&](const Tensor& x) { return x.min(dim, keepdim); }, self);
}
inline std::tuple<Tensor&, Tensor&> sort_out(Tensor& values, Tensor& indices, const Tensor& self, std::int64_t dim = -1,
                                             bool descending = false) {
  return detail::into_both(
      "sort", values, indices, [&](const Tensor& x) { return x.sort(dim, descending); }, self);
}
/// As topk(), into `values` and `indices`.
inline std::tuple<Tensor&, Tensor&> topk_out(Tensor& values, Tensor& indices, const Tensor& self, std::int64_t k,
                                             std::int64_t dim = -1, bool largest = true, bool sorted = true) {
  return detail::into_both(
      "topk", values, indices, [&](const Tensor& x) { return x.topk(k, dim, largest, sorted); }, self);
}

// Factories: `out` decides dtype and device.
/// As zeros(), into `out`.
inline Tensor& zeros_out(Tensor& out, IntArrayRef sizes) {
  return detail::write_out({"zeros"}, out, zeros(sizes, out.options()));
}
/// As ones(), into `out`.
inline Tensor& ones_out(Tensor& out, IntArrayRef sizes) {
  return detail::write_out({"ones"}, out, ones(sizes, out.options()));
}
inline Tensor& full_out(Tensor& out, IntArrayRef sizes, const Scalar& value) {
  return detail::write_out({"full"}, out, full(sizes, value, out.options()));
}
<<<<<<< HEAD
/// As eye(), into `out`.
inline Tensor& eye_out(Tensor& out, std::int64_t n) { return detail::write_out("eye", out, eye(n, out.options())); }
=======
inline Tensor& eye_out(Tensor& out, std::int64_t n) { return detail::write_out({"eye"}, out, eye(n, out.options())); }
>>>>>>> e6a4616 (Results go into out under the rules of their functions: what has no gradient takes any input, and dtypes are not cast in silence; decimals of 16-bit numbers are rounded in 32)
inline Tensor& eye_out(Tensor& out, std::int64_t n, std::int64_t m) {
  return detail::write_out({"eye"}, out, eye(n, m, out.options()));
}
/// As arange(), into `out`, which is resized; its dtype counts.
inline Tensor& arange_out(Tensor& out, const Scalar& end) {
  return detail::write_out({"arange"}, out, arange(end, out.options()));
}
inline Tensor& arange_out(Tensor& out, const Scalar& start, const Scalar& end, const Scalar& step = 1) {
  return detail::write_out({"arange"}, out, arange(start, end, step, out.options()));
}
/// As linspace(), into `out`.
inline Tensor& linspace_out(Tensor& out, const Scalar& start, const Scalar& end, std::int64_t steps = 100) {
  return detail::write_out({"linspace"}, out, linspace(start, end, steps, out.options()));
}
/// As rand(), into `out`.
inline Tensor& rand_out(Tensor& out, IntArrayRef sizes) {
  return detail::write_out({"rand"}, out, rand(sizes, out.options()));
}
/// As randn(), into `out`.
inline Tensor& randn_out(Tensor& out, IntArrayRef sizes) {
  return detail::write_out({"randn"}, out, randn(sizes, out.options()));
}

}  // namespace tenon
