// Moves between channel rows and blocks of channels: transpositions of squares (square.h).
// oneDNN's own reorders take elements of 16 bits one at a time, and are slow where the channels do not fill their
// blocks.
#include "kernels/nn/channel_blocks.h"

#include <type_traits>

#include "kernels/register.h"
#include "kernels/square.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

// body(first element in blocks, first element in plain, channels) for up to 8 channels of a picture that lie together:
// their number is a constant where they are 8, so that nothing is asked for each row of a square then.
template <class F>
void each_square_row(const ChannelBlocks& shape, const F& body) {
  for (i64 n = 0; n < shape.pictures; ++n) {
    for (i64 c = 0; c < shape.blocks() * shape.block; c += kSide) {
      const i64 in_block = c / shape.block * shape.plane * shape.block + c % shape.block;
      const i64 in_blocks = n * shape.picture_elements() + in_block, in_plain = n * shape.plain_step + c * shape.plane;
      if (c + kSide <= shape.channels) {
        body(in_blocks, in_plain, std::integral_constant<i64, kSide>());
      } else {
        body(in_blocks, in_plain, larger<i64>(0, shape.channels - c));
      }
    }
  }
}

template <class T>
void to_blocks(T* blocks, const T* plain, const ChannelBlocks& shape) {
  each_square_row(shape, [&](i64 in_blocks, i64 in_plain, auto channels) {
    T* const to = blocks + in_blocks;
    const T* const from = plain + in_plain;
    i64 p = 0;
    for (; p + kSide <= shape.plane; p += kSide)
      transpose_square(to + p * shape.block, shape.block, kSide, from + p, shape.plane, channels);
    for (; p < shape.plane; ++p) {
      for (i64 c = 0; c < kSide; ++c) to[p * shape.block + c] = c < channels ? from[c * shape.plane + p] : T(0);
    }
  });
}

template <class T>
void from_blocks(T* plain, const T* blocks, const ChannelBlocks& shape) {
  each_square_row(shape, [&](i64 in_blocks, i64 in_plain, auto channels) {
    T* const to = plain + in_plain;
    const T* const from = blocks + in_blocks;
    i64 p = 0;
    for (; p + kSide <= shape.plane; p += kSide)
      transpose_square(to + p, shape.plane, channels, from + p * shape.block, shape.block, kSide);
    for (; p < shape.plane; ++p) {
      for (i64 c = 0; c < channels; ++c) to[c * shape.plane + p] = from[p * shape.block + c];
    }
  });
}

}  // namespace

void to_channel_blocks(void* blocks, const void* plain, const ChannelBlocks& shape) {
  if (shape.element_bytes == 4) return to_blocks(static_cast<float*>(blocks), static_cast<const float*>(plain), shape);
  to_blocks(static_cast<u16*>(blocks), static_cast<const u16*>(plain), shape);
}

void from_channel_blocks(void* plain, const void* blocks, const ChannelBlocks& shape) {
  if (shape.element_bytes == 4)
    return from_blocks(static_cast<float*>(plain), static_cast<const float*>(blocks), shape);
  from_blocks(static_cast<u16*>(plain), static_cast<const u16*>(blocks), shape);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
