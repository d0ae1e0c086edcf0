// Checks that every optimiser makes of its options.
#pragma once

#include <tenon/core/error.h>
#include <tenon/tensor/tensor.h>

#include <string>

namespace tenon::optim {

/// Throws Error, with the option's name and value, for a value below the minimum.
inline void check_at_least(const std::string& what, double value, double minimum) {
  if (value >= minimum) return;
  throw Error("Invalid " + what + ": " + std::to_string(value));
}
/// In [0, 1).
inline void check_fraction(const std::string& what, double value) {
  if (value >= 0 && value < 1) return;
  throw Error("Invalid " + what + ": " + std::to_string(value));
}
/// Throws Error unless both betas are at least 0 and below 1.
inline void check_betas(const std::tuple<double, double>& betas) {
  check_fraction("beta parameter at index 0", std::get<0>(betas));
  check_fraction("beta parameter at index 1", std::get<1>(betas));
}

/// Both undefined, or equal in every element.
inline bool same_tensor(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.equal(b);
}

}  // namespace tenon::optim
