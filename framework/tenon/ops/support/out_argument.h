// What the _out forms share. The result is computed first and then copied, so that these forms keep the caller's tensor
// but save no memory.
#pragma once

#include <tenon/autograd/grad_mode.h>
#include <tenon/tensor/tensor.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <tuple>

namespace tenon::detail {

/// What the _out form of a function asks of its arguments. libtorch's functions differ; each says it in its own row.
struct OutRule {
  /// The dtype of `out`: one that the result's can be cast to; the result's own; or, for truth values, kBool or kUInt8.
  enum class Asks : std::uint8_t { kCastable, kSame, kTruth } dtype = Asks::kCastable;
  /// Arguments that require a gradient are refused, since none would flow. A function without one takes them.
  bool differentiable = true;
  /// Sums and products are computed in the dtype of `out` where none is given.
  bool accumulates = false;
};

/// What rows name in their column `out`.
namespace out_rules {
inline constexpr OutRule kCastable{};
inline constexpr OutRule kSame{.dtype = OutRule::Asks::kSame};
/// Truth values and positions have no gradient.
inline constexpr OutRule kTruth{.dtype = OutRule::Asks::kTruth, .differentiable = false};
inline constexpr OutRule kPositions{.dtype = OutRule::Asks::kSame, .differentiable = false};
/// Computed in the dtype of `out`: sums and products of any dtype, means of a floating one that can be cast to it.
inline constexpr OutRule kSums{.dtype = OutRule::Asks::kSame, .accumulates = true};
inline constexpr OutRule kMeans{.dtype = OutRule::Asks::kCastable, .accumulates = true};
}  // namespace out_rules

constexpr OutRule without_gradient(OutRule rule) {
  rule.differentiable = false;
  return rule;
}

TENON_API void check_out_argument(const OutRule& rule, const char* op, const Tensor& argument);
/// `out` takes the sizes and the values of `result`.
TENON_API Tensor& write_out(const OutRule& rule, const char* op, Tensor& out, const Tensor& result);
/// What `op`, which accumulates, reads for an `out` of that dtype.
TENON_API Tensor accumulated_in(const OutRule& rule, const char* op, const Tensor& self, Dtype dtype);

template <class Argument>
void check_out(const OutRule& rule, const char* op, const Argument& argument) {
  if constexpr (std::same_as<Argument, Tensor>) {
    check_out_argument(rule, op, argument);
  } else if constexpr (std::same_as<Argument, TensorList>) {
    for (const Tensor& one : argument) check_out_argument(rule, op, one);
  }
}

/// function(arguments...) into `out`.
template <class Function, class... Arguments>
Tensor& into(const OutRule& rule, const char* op, Tensor& out, Function function, const Arguments&... arguments) {
  check_out_argument(rule, op, out);
  (check_out(rule, op, arguments), ...);
  NoGradGuard no_grad;
  return write_out(rule, op, out, function(arguments...));
}

template <class Argument>
bool is_given_dtype(const Argument& argument) {
  if constexpr (std::same_as<Argument, std::optional<Dtype>>) return argument.has_value();
  return false;
}

/// function(self), a reduction or scan with these parameters, into `out`.
template <class Function, class... Parameters>
Tensor& into_reduction(const OutRule& rule, const char* op, Tensor& out, Function function, const Tensor& self,
                       const Parameters&... parameters) {
  if (!rule.accumulates || (is_given_dtype(parameters) || ...)) return into(rule, op, out, function, self);
  check_out_argument(rule, op, out);
  check_out_argument(rule, op, self);
  NoGradGuard no_grad;
  const Tensor read = accumulated_in(rule, op, self, out.scalar_type());
  return write_out(rule, op, out, function(read).to(out.scalar_type()));
}

/// A function of two results, values and places, into `first` and `second`.
template <class Function, class... Arguments>
std::tuple<Tensor&, Tensor&> into_both(const OutRule& rule, const char* op, Tensor& first, Tensor& second,
                                       Function function, const Arguments&... arguments) {
  check_out_argument(rule, op, first);
  check_out_argument(rule, op, second);
  (check_out(rule, op, arguments), ...);
  NoGradGuard no_grad;
  const auto [a, b] = function(arguments...);
  return {write_out(rule, op, first, a), write_out(rule, op, second, b)};
}

}  // namespace tenon::detail
