// Positions of a dim, each repeated as often as a number of its own says.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// A copy with position i of `dim` repeats[i] times (`repeats` of one element stands for all); without a dim, of the
/// flattened tensor. Throws Error for a negative number, and an output_size that is not the new size of the dim.
inline Tensor repeat_interleave(const Tensor& self, const Tensor& repeats,
                                std::optional<std::int64_t> dim = std::nullopt,
                                std::optional<std::int64_t> output_size = std::nullopt) {
  return self.repeat_interleave(repeats, dim, output_size);
}
/// repeats[i] times the number i, for every i: (repeats.sum()), of repeats' dtype, which is int64 or int32.
TENON_API Tensor repeat_interleave(const Tensor& repeats, std::optional<std::int64_t> output_size = std::nullopt);

}  // namespace tenon
