// What the _out forms share. The result is computed first and then copied: what these forms save is the name of a
// tensor, not memory.
#pragma once

#include <tenon/autograd/grad_mode.h>
#include <tenon/tensor/tensor.h>

#include <concepts>
#include <tuple>

namespace tenon::detail {

TENON_API void check_out_argument(const char* op, const Tensor& argument);
/// `out` takes the sizes and the values of `result`.
TENON_API Tensor& write_out(const char* op, Tensor& out, const Tensor& result);

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

/// A function of two results into `first` and `second`.
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
