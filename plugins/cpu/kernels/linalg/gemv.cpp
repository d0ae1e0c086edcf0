// Matrix times vector, a row after the other. Every element of A is read once, so the speed is that of the memory that
// A lies in: the rows are read in the order of their addresses, which hardware prefetches, and not several at a time.
//
// A row's terms go to 64 running sums that are added up in a fixed order: a row's bits depend neither on the level of
// vector instructions nor on the rows beside it.
#include "kernels/linalg/gemv.h"

#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kLanes = 16, kSums = 4;
typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t Mask __attribute__((vector_size(4 * kLanes)));
typedef float Unaligned __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

// By reference: vectors that are wider than the level's have no agreed way of being passed.
inline const Unaligned& vector_at(const float* p) { return *reinterpret_cast<const Unaligned*>(p); }

inline float sum_of(const Vector& v) {
  const auto eight = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto four =
      __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

}  // namespace

void gemv(const MatrixVector& p) {
  const i64 whole = p.terms / (kSums * kLanes) * (kSums * kLanes);
  const i64 vectors = p.terms / kLanes * kLanes;
  // What is left of a row is the end of its last vector, whose other lanes were taken before.
  const i64 rest = p.terms - vectors;
  Mask is_left = {};
  for (i64 lane = kLanes - rest; lane < kLanes; ++lane) is_left[lane] = -1;
  const auto load_end = [&](Vector& end, const float* row) {
    // A copy first: a reference to a Mask would promise the alignment of one, which no row has, and sse2 would trap.
    const Vector last = vector_at(row + p.terms - kLanes);
    end = reinterpret_cast<Vector>(reinterpret_cast<Mask>(last) & is_left);
  };
  Vector end_of_x, end_of_row;
  load_end(end_of_x, p.x);
  for (i64 i = 0; i < p.rows; ++i) {
    const float* const row = p.a + i * p.row_stride;
    Vector s0 = {}, s1 = {}, s2 = {}, s3 = {};
    for (i64 k = 0; k < whole; k += kSums * kLanes) {
      s0 += vector_at(row + k) * vector_at(p.x + k);
      s1 += vector_at(row + k + kLanes) * vector_at(p.x + k + kLanes);
      s2 += vector_at(row + k + 2 * kLanes) * vector_at(p.x + k + 2 * kLanes);
      s3 += vector_at(row + k + 3 * kLanes) * vector_at(p.x + k + 3 * kLanes);
    }
    for (i64 k = whole; k < vectors; k += kLanes) s0 += vector_at(row + k) * vector_at(p.x + k);
    if (rest > 0) {
      load_end(end_of_row, row);
      s1 += end_of_row * end_of_x;
    }
    const Vector sums = (s0 + s1) + (s2 + s3);
    const float product = p.alpha * sum_of(sums);
    float& y = p.y[i * p.y_stride];
    y = p.beta == 0 ? product : product + p.beta * y;
  }
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
