// The equation of einsum: which dims there are, and where each operand has them.
#pragma once

#include <tenon/tensor/tensor.h>

#include <array>
#include <string_view>
#include <vector>

namespace tenon::ops {

inline constexpr int kLetters = 52;

/// Which dims there are, and in which order: the result's first, then those that are summed over.
struct Arrangement {
  std::array<int, kLetters> at;  ///< of each letter; -1 where it does not occur
  std::array<std::int64_t, kLetters> size;
  int ellipsis_at = 0, ellipsis_dims = 0;
  int result_dims = 0, dims = 0;
};

/// The labels of each operand: a letter's number, or kLetters for "...".
using Subscripts = std::vector<std::vector<int>>;

/// Throws Error where the equation is ill-formed, or does not fit the operands' sizes.
Arrangement arrangement_of(std::string_view equation, TensorList operands, Subscripts& inputs);
/// An operand with all dims of the arrangement; those that it lacks have size 1. Throws Error for a diagonal of two
/// different sizes.
Tensor laid_out(Tensor operand, const std::vector<int>& labels, const Arrangement& layout);

}  // namespace tenon::ops
