// Values in 8 bits by blocks: each of kBlockValues values is a byte of the dynamic map (kernel/dynamic_map.h) times the
// block's largest absolute value. For what an optimiser remembers, whose values differ by powers of ten.
//
//   packed: [ scale of each block, float32 | a byte of each value ]        about a quarter of float32
#pragma once

#include <tenon/tensor/tensor.h>

#include <cstdint>

namespace tenon::quantized {

/// What pack_blocks() makes of so many values, in bytes.
TENON_API std::int64_t packed_bytes(std::int64_t values);

/// The values, in the order of their memory, as one tensor of bytes (packed_bytes()): scales, then codes. `is_signed`
/// is false for values that are never below zero, whose map is twice as fine. Written to `into` where that is defined,
/// of those sizes. A block with a nan or an infinity becomes one of nan. Throws Error for integers, and for a tensor
/// with holes in its memory.
TENON_API Tensor pack_blocks(const Tensor& values, bool is_signed, const Tensor& into = {});

/// The values of pack_blocks() in a new tensor of `like`'s sizes, strides and dtype, on the device of `packed`. Throws
/// Error where `packed` is not of so many values.
TENON_API Tensor unpack_blocks(const Tensor& packed, const Tensor& like, bool is_signed);

}  // namespace tenon::quantized
