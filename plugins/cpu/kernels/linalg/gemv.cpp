// Matrix times vector, a row after the other. Every element of A is read once, so the speed is that of the memory that
// A lies in: the rows are read in the order of their addresses, which hardware prefetches, and not several at a time.
//
// A row's terms go to 64 running sums that are added up in a fixed order: a row's bits depend neither on the level of
// vector instructions nor on the rows beside it.
#include "kernels/linalg/gemv.h"

#include "kernels/native_vector.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kLanes = kVectorLanes<float>;
using Vector = NativeVector<float>::Type;
using Mask = NativeVector<i32>::Type;

constexpr i64 kSums = 64;                // of a row
constexpr i64 kBlock = 16;               // what is left behind the last 64 terms is taken by so many
constexpr i64 kPieces = kSums / kLanes;  // the vectors that the sums lie in
constexpr i64 kPiecesOfBlock = kBlock / kLanes;

/// From the element n on: the mask of the last n lanes of a block.
constexpr i32 kIsLeft[2 * kBlock] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                     -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

/// Of a whole block: its upper half is added to its lower one until a number is left.
[[gnu::always_inline]] inline float sum_of(const Vector (&block)[kPiecesOfBlock]) {
  if constexpr (kPiecesOfBlock == 4) return sum_of_halves<float>((block[0] + block[2]) + (block[1] + block[3]));
  if constexpr (kPiecesOfBlock == 2) return sum_of_halves<float>(block[0] + block[1]);
  return sum_of_halves<float>(block[0]);
}

/// The end of a row or of x: the last kBlock elements, without those that are not left.
struct End {
  Vector pieces[kPiecesOfBlock];
};

}  // namespace

void gemv(const MatrixVector& p) {
  const i64 whole = p.terms / kSums * kSums;
  const i64 blocks = p.terms / kBlock * kBlock;
  // What is left of a row is the end of its last block, whose other lanes were taken before.
  const i64 rest = p.terms - blocks;
  const auto end_of = [&](const float* row) {
    End end;
    for (i64 piece = 0; piece < kPiecesOfBlock; ++piece) {
      // A copy first: a reference to a Mask would promise the alignment of one, which no row has, and sse2 would trap.
      const Vector last = vector_at(row + p.terms - kBlock + piece * kLanes);
      const Mask is_left = vector_at(kIsLeft + rest + piece * kLanes);
      end.pieces[piece] = reinterpret_cast<Vector>(reinterpret_cast<Mask>(last) & is_left);
    }
    return end;
  };
  const End end_of_x = end_of(p.x);
  for (i64 i = 0; i < p.rows; ++i) {
    const float* const row = p.a + i * p.row_stride;
    Vector sums[kPieces] = {};
    for (i64 k = 0; k < whole; k += kSums) {
      for (i64 piece = 0; piece < kPieces; ++piece)
        sums[piece] += vector_at(row + k + piece * kLanes) * vector_at(p.x + k + piece * kLanes);
    }
    for (i64 k = whole; k < blocks; k += kBlock) {
      for (i64 piece = 0; piece < kPiecesOfBlock; ++piece)
        sums[piece] += vector_at(row + k + piece * kLanes) * vector_at(p.x + k + piece * kLanes);
    }
    if (rest > 0) {
      const End end_of_row = end_of(row);
      for (i64 piece = 0; piece < kPiecesOfBlock; ++piece)
        sums[kPiecesOfBlock + piece] += end_of_row.pieces[piece] * end_of_x.pieces[piece];
    }
    Vector block[kPiecesOfBlock];
    for (i64 piece = 0; piece < kPiecesOfBlock; ++piece) {
      const Vector* const of = sums + piece;
      block[piece] = (of[0] + of[kPiecesOfBlock]) + (of[2 * kPiecesOfBlock] + of[3 * kPiecesOfBlock]);
    }
    const float product = p.alpha * sum_of(block);
    float& y = p.y[i * p.y_stride];
    y = p.beta == 0 ? product : product + p.beta * y;
  }
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
