// Products of tiles by one block of threads, as attention and matmul need them: 16 x 16 threads, each with a square of
// kSide x kSide elements of a tile of kTile x kTile.
#pragma once

#include "kernels/dtypes.cuh"
#include "kernels/launch.h"

#include <cstdint>

namespace tenon::cuda::tiles {

static_assert(kThreads == 256);
inline constexpr int kSlice = 16;  ///< terms of the sums that are in shared memory at a time
template <class T>
inline constexpr int kTile = sizeof(T) <= 4 ? 64 : 32;
template <class T>
inline constexpr int kSide = kTile<T> / 16;
/// Rows of a tile are that far apart: their vectors of 16 bytes stay aligned, and lie in different banks.
template <class T>
inline constexpr int kPitch = kTile<T> + 16 / static_cast<int>(sizeof(T));

template <class T>
struct alignas(16) Slice {
  T of[kSlice][kPitch<T>];
};
template <class T>
struct alignas(16) Square {
  T of[kTile<T>][kPitch<T>];
};
template <class T>
using Sums = T[kSide<T>][kSide<T>];

/// This thread's first row and column in a tile.
template <class T>
__device__ inline int own_row() {
  return static_cast<int>(threadIdx.x) / 16 * kSide<T>;
}
template <class T>
__device__ inline int own_column() {
  return static_cast<int>(threadIdx.x) % 16 * kSide<T>;
}

template <class T>
__device__ void clear(Sums<T>& sums) {
#pragma unroll
  for (int i = 0; i < kSide<T>; ++i) {
#pragma unroll
    for (int j = 0; j < kSide<T>; ++j) sums[i][j] = T(0);
  }
}

/// sums += the products of one slice: left.of[k][row] * right.of[k][column].
template <class T>
__device__ void add_slice(Sums<T>& sums, const Slice<T>& left, const Slice<T>& right) {
  const int row = own_row<T>(), column = own_column<T>();
#pragma unroll
  for (int k = 0; k < kSlice; ++k) {
    T a[kSide<T>], b[kSide<T>];
#pragma unroll
    for (int i = 0; i < kSide<T>; ++i) a[i] = left.of[k][row + i];
#pragma unroll
    for (int j = 0; j < kSide<T>; ++j) b[j] = right.of[k][column + j];
#pragma unroll
    for (int i = 0; i < kSide<T>; ++i) {
#pragma unroll
      for (int j = 0; j < kSide<T>; ++j) sums[i][j] += a[i] * b[j];
    }
  }
}

/// Dense rows of elements E, `step` of them apart, of which `count` are there. In slices they are of their compute
/// type. Whatever has these three is rows to the functions below.
template <class E>
struct Rows {
  using Element = E;
  __device__ const E* at(int row) const { return first + row * step; }
  const E* first;
  std::int64_t step;
  int count;
};

/// slice.of[k][r] = element from + k of row r; 0 where there is none.
template <class T, class R>
__device__ void load_transposed(Slice<T>& slice, const R& rows, int from, int width) {
  using E = typename R::Element;
  for (int t = static_cast<int>(threadIdx.x); t < kSlice * kTile<T>; t += kThreads) {
    const int k = t % kSlice, r = t / kSlice;
    slice.of[k][r] = r < rows.count && from + k < width ? load_as<E, T>(rows.at(r)[from + k]) : T(0);
  }
}
/// slice.of[k][c] = element c of row from + k.
template <class T, class R>
__device__ void load_plain(Slice<T>& slice, const R& rows, int from, int width) {
  using E = typename R::Element;
  for (int t = static_cast<int>(threadIdx.x); t < kSlice * kTile<T>; t += kThreads) {
    const int k = t / kTile<T>, c = t % kTile<T>;
    slice.of[k][c] = from + k < rows.count && c < width ? load_as<E, T>(rows.at(from + k)[c]) : T(0);
  }
}

/// sums = a b^T over rows of `width` elements.
template <class T, class A, class B>
__device__ void multiply_rows(Sums<T>& sums, const A& a, const B& b, int width, Slice<T>& left, Slice<T>& right) {
  clear<T>(sums);
  for (int from = 0; from < width; from += kSlice) {
    __syncthreads();  // the slices are not in use any more
    load_transposed(left, a, from, width);
    load_transposed(right, b, from, width);
    __syncthreads();
    add_slice<T>(sums, left, right);
  }
}

/// sums += w rows, or w^T rows where `transposed`: `rows` are those of the summed dimension, `width` columns of them.
/// Begins with a barrier: w may have been written just before.
template <bool transposed, class T, class R>
__device__ void add_square(Sums<T>& sums, const Square<T>& w, const R& rows, int width, Slice<T>& slice) {
  const int row = own_row<T>(), column = own_column<T>();
  for (int from = 0; from < rows.count; from += kSlice) {
    __syncthreads();
    load_plain(slice, rows, from, width);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kSlice; ++k) {
#pragma unroll
      for (int i = 0; i < kSide<T>; ++i) {
        const T left = transposed ? w.of[from + k][row + i] : w.of[row + i][from + k];
#pragma unroll
        for (int j = 0; j < kSide<T>; ++j) sums[i][j] += left * slice.of[k][column + j];
      }
    }
  }
}

}  // namespace tenon::cuda::tiles
