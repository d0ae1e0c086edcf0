// Squares of 8 x 8 elements, transposed in vector registers.
#pragma once

#include "kernels/level.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

/// The elements of one side.
inline constexpr i64 kSide = 8;

/// A row of a square of elements of two or four bytes.
template <class T>
struct SquareRow {
  typedef T Type __attribute__((vector_size(kSide * sizeof(T))));
};

/// Takes the elements of two rows in turn: this moves the highest bit of the row's number to the lowest of the column's
/// and the column's highest to the row's lowest. Three of them exchange both.
template <class R>
[[gnu::always_inline]] inline void interleave_rows(const R* in, R* out) {
#pragma GCC unroll 4
  for (i64 i = 0; i < kSide / 2; ++i) {
    out[2 * i] = __builtin_shufflevector(in[i], in[i + kSide / 2], 0, 8, 1, 9, 2, 10, 3, 11);
    out[2 * i + 1] = __builtin_shufflevector(in[i], in[i + kSide / 2], 4, 12, 5, 13, 6, 14, 7, 15);
  }
}

/// Element (i, j) of a square goes to (j, i); rows lie the given numbers of elements apart. Of `from` only the first
/// `rows_in` rows are read, as if the others were 0, and of `to` only the first `rows_out` are written.
template <class T, class RowsOut, class RowsIn>
[[gnu::always_inline]] inline void transpose_square(T* to, i64 to_row, RowsOut rows_out, const T* from, i64 from_row,
                                                    RowsIn rows_in) {
  using Row = typename SquareRow<T>::Type;
  Row a[kSide], b[kSide];
#pragma GCC unroll 8
  for (i64 i = 0; i < kSide; ++i) {
    a[i] = Row{};
    if (i < rows_in) __builtin_memcpy(&a[i], from + i * from_row, sizeof(Row));
  }
  interleave_rows(a, b);
  interleave_rows(b, a);
  interleave_rows(a, b);
#pragma GCC unroll 8
  for (i64 i = 0; i < kSide; ++i) {
    if (i < rows_out) __builtin_memcpy(to + i * to_row, &b[i], sizeof(Row));
  }
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
