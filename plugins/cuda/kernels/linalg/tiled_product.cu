// Matrix products by tiles in shared memory: of integers, and of floats where there is no library.
#include "kernels/dtypes.cuh"
#include "kernels/linalg/product.h"
#include "kernels/linalg/tiles.cuh"

namespace tenon::cuda {
namespace {

using namespace tiles;

template <class T>
struct Operand {
  explicit Operand(const Matrix& m)
      : data(static_cast<T*>(m.data)), row(m.row_stride), column(m.column_stride), batch(m.batch_stride) {}
  T* data;
  i64 row, column, batch;
};

// A sum of many terms is made of sums of this many slices, so that it keeps the digits of the last ones.
constexpr i64 kRun = 8;

struct Extent {
  i64 m, n, k;
};

// slice.of[k][r] = element (first + r, from + k) of a matrix of `rows` rows and `terms` columns; 0 outside. Threads
// that follow each other go along the smaller stride.
template <class T, class C>
__device__ void load_strided(Slice<C>& slice, const T* m, i64 row_stride, i64 term_stride, i64 first, i64 rows,
                             i64 from, i64 terms) {
  const bool along_terms = term_stride <= row_stride;
  for (int t = static_cast<int>(threadIdx.x); t < kSlice * kTile<C>; t += kThreads) {
    const int k = along_terms ? t % kSlice : t / kTile<C>, r = along_terms ? t / kSlice : t % kTile<C>;
    const bool inside = first + r < rows && from + k < terms;
    slice.of[k][r] = inside ? load_as(m[(first + r) * row_stride + (from + k) * term_stride]) : C(0);
  }
}

template <class C>
__device__ void take(Sums<C>& all, Sums<C>& run) {
#pragma unroll
  for (int i = 0; i < kSide<C>; ++i) {
#pragma unroll
    for (int j = 0; j < kSide<C>; ++j) all[i][j] += run[i][j];
  }
  clear<C>(run);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    product_kernel(Extent extent, Operand<const T> a, Operand<const T> b, Operand<T> y, Operand<const T> addend,
                   Compute<T> alpha, Compute<T> beta) {
  using C = Compute<T>;
  __shared__ Slice<C> left, right;
  const i64 row_tiles = (extent.m + kTile<C> - 1) / kTile<C>, column_tiles = (extent.n + kTile<C> - 1) / kTile<C>;
  const i64 unit = blockIdx.x, batch = unit / (row_tiles * column_tiles);
  const i64 row = unit / column_tiles % row_tiles * kTile<C>, column = unit % column_tiles * kTile<C>;
  Sums<C> sums, run;
  clear<C>(sums);
  clear<C>(run);
  for (i64 from = 0; from < extent.k; from += kSlice) {
    __syncthreads();
    load_strided(left, a.data + batch * a.batch, a.row, a.column, row, extent.m, from, extent.k);
    load_strided(right, b.data + batch * b.batch, b.column, b.row, column, extent.n, from, extent.k);
    __syncthreads();
    add_slice<C>(run, left, right);
    if (kIsFloating<T> && from / kSlice % kRun == kRun - 1) take<C>(sums, run);
  }
  take<C>(sums, run);
  const i64 own_r = row + own_row<C>(), own_c = column + own_column<C>();
#pragma unroll
  for (int i = 0; i < kSide<C>; ++i) {
#pragma unroll
    for (int j = 0; j < kSide<C>; ++j) {
      const i64 r = own_r + i, c = own_c + j;
      if (r >= extent.m || c >= extent.n) continue;
      C value = alpha * sums[i][j];
      if (addend.data != nullptr)
        value += beta * load_as(addend.data[batch * addend.batch + r * addend.row + c * addend.column]);
      y.data[batch * y.batch + r * y.row + c * y.column] = store_as<T>(value);
    }
  }
}

}  // namespace

void tiled_product(KernelContext& context, const Product& p) {
  const Extent extent{p.y.rows, p.y.columns, p.a.columns};
  numbers_only("matmul", p.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    const i64 tiles = p.batch * ceil_div(extent.m, kTile<C>) * ceil_div(extent.n, kTile<C>);
    launch(context, {.grid = static_cast<unsigned>(tiles), .block = kThreads}, product_kernel<T>, extent,
           Operand<const T>(p.a), Operand<const T>(p.b), Operand<T>(p.y), Operand<const T>(p.addend),
           static_cast<C>(p.alpha), static_cast<C>(p.beta));
  });
}

}  // namespace tenon::cuda
