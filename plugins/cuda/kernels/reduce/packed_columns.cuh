// Reductions down the columns of a matrix whose rows are dense, read 16 bytes at a time: the sums of a bias's gradient.
// The engine of reduce.cuh reads single elements, of 16 bits half of what a warp could.
//
//   a block    p0 p1 p2 … p31     packets of eight columns (float16), and the rows beside each other: a warp reads
//              p0 p1 p2 … p31     neighbours of one row or of a few
//
// A thread puts its rows together, then the block puts its threads together, and, where rows were cut into parts,
// finish_kernel the blocks: always in the same order.
#pragma once

#include "kernels/reduce/packed_lines.cuh"
#include "kernels/reduce/reduce.cuh"

#include <algorithm>
#include <utility>

namespace tenon::cuda {

struct Columns {
  const char* data;
  i64 row_bytes, rows, packets;
  int across;  ///< packets of a block, a power of two up to a warp
  i64 part;    ///< rows of a part
  int parts;
};

/// Whether a reduction of elements of type T is one of columns that can be read by packets, and worth it.
template <class T>
bool is_of_packed_columns(const Reduction& r) {
  constexpr i64 kFewest = 8;  // packets: of less than 128 bytes a row, the rows lie too far apart to matter
  if (r.rows || r.kept.rank != 1 || r.reduced.rank != 1) return false;
  const auto start = reinterpret_cast<std::uintptr_t>(r.kept.data[0]);
  return r.kept.strides[0][0] == static_cast<i64>(sizeof(T)) && r.kept.total % kPacketOf<T> == 0 &&
         r.kept.total >= kFewest * kPacketOf<T> && start % 16 == 0 && r.reduced.strides[0][0] % 16 == 0;
}

template <class T>
Columns plan_columns(const Reduction& r) {
  Columns c{.data = r.kept.data[0],
            .row_bytes = r.reduced.strides[0][0],
            .rows = r.reduced.total,
            .packets = r.kept.total / kPacketOf<T>};
  c.across = power_of_two(std::min<i64>(c.packets, kWarp));
  if (c.across > c.packets) c.across /= 2;
  constexpr i64 kBlocks = 1024, kLeast = 16;  // about so many blocks, and at least so many rows for each thread
  const i64 blocks = ceil_div(c.packets, c.across), lanes = kThreads / c.across;
  const i64 most = std::max<i64>(1, c.rows / (lanes * kLeast));
  c.part = ceil_div(c.rows, std::clamp<i64>(kBlocks / blocks, 1, most));
  c.parts = static_cast<int>(ceil_div(c.rows, c.part));
  return c;
}

#if defined(__CUDACC__)

/// `partial`: null where there is one part.
template <class T, class Fold>
__global__ void __launch_bounds__(kThreads)
    packed_columns_kernel(Columns c, Fold fold, Nest<3> kept, typename Fold::Acc* partial) {
  using Acc = typename Fold::Acc;
  constexpr int kCount = kPacketOf<T>;
  __shared__ Acc shared[kThreads * kCount];  // of each thread, its columns
  const int t = static_cast<int>(threadIdx.x), lanes = kThreads / c.across, lane = t / c.across;
  const i64 first = i64{blockIdx.x} * c.across, packet = first + t % c.across;
  Acc all[kCount];
#pragma unroll
  for (int n = 0; n < kCount; ++n) all[n] = fold.start();
  if (packet < c.packets) {
    const i64 end = min(c.rows, (blockIdx.y + i64{1}) * c.part);
#pragma unroll 4
    for (i64 row = blockIdx.y * c.part + lane; row < end; row += lanes) {
      Compute<T> x[kCount];
      read<T>(reinterpret_cast<const T*>(c.data + row * c.row_bytes) + packet * kCount, x);
#pragma unroll
      for (int n = 0; n < kCount; ++n) fold.step(all[n], x[n], row);
    }
  }
#pragma unroll
  for (int n = 0; n < kCount; ++n) shared[t * kCount + n] = all[n];
  __syncthreads();
  // The columns of the block lie side by side in each lane's piece of shared memory.
  const int width = c.across * kCount;
  for (int column = t; column < width; column += kThreads) {
    const i64 number = first * kCount + column;
    if (number >= c.packets * kCount) break;
    Acc acc = shared[column];
    for (int l = 1; l < lanes; ++l) acc = fold.combine(acc, shared[l * width + column]);
    if (partial) {
      partial[number * c.parts + blockIdx.y] = acc;
    } else {
      finish_output(fold, kept, number, acc);
    }
  }
}

template <class T, class Fold>
void run_packed_columns(KernelContext& context, const Reduction& r, const Fold& fold) {
  using Acc = typename Fold::Acc;
  const Columns c = plan_columns<T>(r);
  Acc* partial = nullptr;
  if (c.parts > 1)
    partial = static_cast<Acc*>(context.scratch(static_cast<std::size_t>(r.kept.total * c.parts) * sizeof(Acc)));
  const dim3 grid(static_cast<unsigned>(ceil_div(c.packets, c.across)), static_cast<unsigned>(c.parts));
  launch(context, {.grid = grid, .block = kThreads}, packed_columns_kernel<T, Fold>, c, fold, r.kept, partial);
  if (partial) launch(context, team_shape(r.kept.total, kWarp), finish_kernel<Fold>, fold, r.kept, partial, c.parts);
}

#endif  // __CUDACC__

}  // namespace tenon::cuda
