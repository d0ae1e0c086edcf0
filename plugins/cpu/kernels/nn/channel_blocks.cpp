// Moves between channel rows and blocks of 16 channels: transpositions of 16 x 16 elements in vector registers.
// oneDNN's own reorder of 16 bits takes an element at a time.
#include "kernels/nn/channel_blocks.h"

#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kSide = ChannelBlocks::kChannels;
using Row = u16 __attribute__((vector_size(2 * kSide)));

// Element (i, j) of a square of 16 x 16 goes to (j, i); rows lie the given numbers of elements apart.
void transpose_square(u16* to, i64 to_row, const u16* from, i64 from_row) {
  Row a[kSide], b[kSide];
#pragma GCC unroll 16
  for (i64 i = 0; i < kSide; ++i) __builtin_memcpy(&a[i], from + i * from_row, sizeof(Row));
  // Each pass takes the elements of two rows in turn, and so moves the highest bit of the row's number to the lowest of
  // the column's and the column's highest to the row's lowest: four of them exchange both.
  const auto pass = [](const Row* in, Row* out) {
#pragma GCC unroll 8
    for (i64 i = 0; i < kSide / 2; ++i) {
      const Row &one = in[i], &other = in[i + kSide / 2];
      out[2 * i] = __builtin_shufflevector(one, other, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      out[2 * i + 1] =
          __builtin_shufflevector(one, other, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
  };
  pass(a, b);
  pass(b, a);
  pass(a, b);
  pass(b, a);
#pragma GCC unroll 16
  for (i64 i = 0; i < kSide; ++i) __builtin_memcpy(to + i * to_row, &a[i], sizeof(Row));
}

// body(block's first element, plain's first element) for 16 channels of a picture.
template <class F>
void each_block(const ChannelBlocks& shape, const F& body) {
  const i64 blocks = shape.channels / kSide;
  for (i64 n = 0; n < shape.pictures; ++n) {
    for (i64 c = 0; c < blocks; ++c) {
      body((n * blocks + c) * shape.plane * kSide, n * shape.plain_step + c * kSide * shape.plane);
    }
  }
}

}  // namespace

void to_channel_blocks(void* blocks, const void* plain, const ChannelBlocks& shape) {
  each_block(shape, [&](i64 block, i64 first) {
    u16* const to = static_cast<u16*>(blocks) + block;
    const u16* const from = static_cast<const u16*>(plain) + first;
    i64 p = 0;
    for (; p + kSide <= shape.plane; p += kSide) transpose_square(to + p * kSide, kSide, from + p, shape.plane);
    for (; p < shape.plane; ++p) {
      for (i64 c = 0; c < kSide; ++c) to[p * kSide + c] = from[c * shape.plane + p];
    }
  });
}

void from_channel_blocks(void* plain, const void* blocks, const ChannelBlocks& shape) {
  each_block(shape, [&](i64 block, i64 first) {
    u16* const to = static_cast<u16*>(plain) + first;
    const u16* const from = static_cast<const u16*>(blocks) + block;
    i64 p = 0;
    for (; p + kSide <= shape.plane; p += kSide) transpose_square(to + p, shape.plane, from + p * kSide, kSide);
    for (; p < shape.plane; ++p) {
      for (i64 c = 0; c < kSide; ++c) to[c * shape.plane + p] = from[p * kSide + c];
    }
  });
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
