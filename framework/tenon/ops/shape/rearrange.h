// Elements turned, moved or repeated along dims. The results are copies.
#pragma once

#include <tenon/tensor/tensor.h>

#include <optional>

namespace tenon {

/// The elements in reverse order along each of `dims`; a copy.
inline Tensor flip(const Tensor& self, IntArrayRef dims) { return self.flip(dims); }
/// flip() along the second dim. Throws Error below 2 dims.
inline Tensor fliplr(const Tensor& self) { return self.fliplr(); }
/// flip() along the first dim. Throws Error for no dim.
inline Tensor flipud(const Tensor& self) { return self.flipud(); }
/// A copy turned k times by 90 degrees from the first of `dims` towards the second. Throws Error below 2 dims.
inline Tensor rot90(const Tensor& self, std::int64_t k = 1, IntArrayRef dims = {0, 1}) { return self.rot90(k, dims); }
/// A copy with the elements moved by `shifts` along `dims`, those pushed out coming in at the other end; without dims,
/// by one shift in the flattened tensor. Throws Error for another number of shifts than dims.
inline Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims = {}) { return self.roll(shifts, dims); }
/// repeat(); where there are fewer numbers than dims, they are for the last dims. Throws Error for a negative number.
inline Tensor tile(const Tensor& self, IntArrayRef repeats) { return self.tile(repeats); }
/// A copy with each position of `dim` `repeats` times; without a dim, of the flattened tensor.
inline Tensor repeat_interleave(const Tensor& self, std::int64_t repeats,
                                std::optional<std::int64_t> dim = std::nullopt) {
  return self.repeat_interleave(repeats, dim);
}

}  // namespace tenon
