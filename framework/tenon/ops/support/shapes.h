// Sizes of reductions. (Bit i of a mask stands for dim i.)
#pragma once

#include <tenon/tensor/tensor.h>

#include <cstdint>

namespace tenon::ops {

/// Sizes of a result with the dims of `mask` reduced; `keep` keeps them as 1.
Dims reduced_sizes(const Dims& sizes, std::uint32_t mask, bool keep);
/// The mask of `dims`; no dims at all = every one. Throws Error for one that is named twice.
std::uint32_t dim_mask(OptionalIntArrayRef dims, int rank);
/// Puts back dims of size 1 that a reduction dropped.
Tensor unsqueeze_mask(const Tensor& tensor, std::uint32_t mask, int rank);

}  // namespace tenon::ops
