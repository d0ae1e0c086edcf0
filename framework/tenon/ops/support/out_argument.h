// What the _out forms share. The result is computed first and then copied, so that these forms keep the caller's tensor
// but save no memory.
#pragma once

#include <tenon/autograd/grad_mode.h>
#include <tenon/tensor/tensor.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

namespace tenon::detail {

/// What the _out form of a function asks of its arguments. libtorch's functions differ.
struct OutRule {
  /// The dtype of `out`: one that the result's can be cast to; the result's own; or, for truth values, kBool or kUInt8.
  enum class Asks : std::uint8_t { kCastable, kSame, kTruth } dtype = Asks::kCastable;
  /// Arguments that require a gradient are refused, since none would flow. A function without one takes them.
  bool differentiable = true;
  /// Sums and products are computed in the dtype of `out` where none is given.
  bool accumulates = false;
};
TENON_API OutRule out_rule(std::string_view op);

TENON_API void check_out_argument(const char* op, const Tensor& argument);
/// `out` takes the sizes and the values of `result`.
TENON_API Tensor& write_out(const char* op, Tensor& out, const Tensor& result);
/// What `op`, which accumulates, reads for an `out` of that dtype.
TENON_API Tensor accumulated_in(const char* op, const Tensor& self, Dtype dtype);

template <class Argument>
void check_out(const char* op, const Argument& argument) {
  if constexpr (std::same_as<Argument, Tensor>) {
    check_out_argument(op, argument);
  } else if constexpr (std::same_as<Argument, TensorList>) {
    for (const Tensor& one : argument) check_out_argument(op, one);
  }
}

/// function(arguments...) into `out`.
template <class Function, class... Arguments>
Tensor& into(const char* op, Tensor& out, Function function, const Arguments&... arguments) {
  check_out_argument(op, out);
  (check_out(op, arguments), ...);
  NoGradGuard no_grad;
  return write_out(op, out, function(arguments...));
}

template <class Argument>
bool is_given_dtype(const Argument& argument) {
  if constexpr (std::same_as<Argument, std::optional<Dtype>>) return argument.has_value();
  return false;
}

/// function(self), a reduction or scan with these parameters, into `out`.
template <class Function, class... Parameters>
Tensor& into_reduction(const char* op, Tensor& out, Function function, const Tensor& self,
                       const Parameters&... parameters) {
  if (!out_rule(op).accumulates || (is_given_dtype(parameters) || ...)) return into(op, out, function, self);
  check_out_argument(op, out);
  check_out_argument(op, self);
  NoGradGuard no_grad;
  return write_out(op, out, function(accumulated_in(op, self, out.scalar_type())).to(out.scalar_type()));
}

/// A function of two results, values and places, into `first` and `second`.
template <class Function, class... Arguments>
std::tuple<Tensor&, Tensor&> into_both(const char* op, Tensor& first, Tensor& second, Function function,
                                       const Arguments&... arguments) {
  check_out_argument(op, first);
  check_out_argument(op, second);
  (check_out(op, arguments), ...);
  NoGradGuard no_grad;
  const auto [a, b] = function(arguments...);
  return {write_out(op, first, a), write_out(op, second, b)};
}

}  // namespace tenon::detail
