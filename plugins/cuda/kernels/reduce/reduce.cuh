// The engine of reductions.
//
// Dimensions are kept or reduced. An output belongs to `lanes` threads of a block; the block has `across` outputs.
// Where the reduced elements lie side by side, so do the lanes, else the outputs: a warp reads neighbours either way.
//
//   rows     o0 o0 o0 o0 o1 o1 o1 o1 …      columns     o0 o1 o2 o3 … o0 o1 o2 o3 …
//
// Few outputs of many elements each are cut into parts, a block each, whose results a second kernel puts together. The
// cut depends on the sizes only and all is put together in a fixed order, so that the bits are always the same.
//
//   Source: operator()(i64 offset) -> value         what is read at an offset of x in bytes
//   Fold:   Acc, start(), step(acc, value, position), combine(acc, acc), finish(acc, Output)
#pragma once

#include "kernels/reduce/any_element.cuh"
#include "kernels/reduce/lines.cuh"
#include "kernels/reduce/team.cuh"

#include <algorithm>

namespace tenon::cuda {

struct Reduction {
  Nest<3> kept;     ///< x and two outputs, which may be the same
  Nest<1> reduced;  ///< x
  bool rows = true;
  int lanes = 1, across = kThreads;
  i64 part = 0;  ///< reduced elements of a part
  int parts = 1;
};

/// Outputs have x's rank; a dimension is reduced where the output's size is 1 and x's is not.
inline Reduction plan_reduction(const TensorView& x, const TensorView& y0, const TensorView& y1) {
  const auto is_reduced = [&](int d) { return y0.sizes[d] == 1 && x.sizes[d] != 1; };
  const auto is_kept = [&](int d) { return !is_reduced(d); };
  const PartView kept(x, is_kept), kept_y0(y0, is_kept), kept_y1(y1, is_kept), reduced(x, is_reduced);
  Reduction r;
  r.kept = make_nest<3>({&kept.view(), &kept_y0.view(), &kept_y1.view()});
  r.reduced = make_nest<1>({&reduced.view()});
  const i64 length = r.reduced.total;
  r.rows = r.kept.sizes[0].divisor() == 1 || r.reduced.strides[0][0] <= r.kept.strides[0][0];
  if (r.rows) {
    r.lanes = power_of_two(std::min<i64>(length / 4, kThreads));
  } else {
    const int columns = power_of_two(std::min<i64>(static_cast<i64>(r.kept.sizes[0].divisor()), kWarp));
    r.lanes = power_of_two(std::min<i64>(length, kThreads / columns));
  }
  r.across = kThreads / r.lanes;
  constexpr i64 kBlocks = 1024, kLeast = 32;  // about so many blocks, and at least so many elements for each thread
  const i64 blocks = ceil_div(r.kept.total, r.across);
  if (blocks > 0 && blocks <= kBlocks / 2 && length > r.lanes * kLeast * 2) {
    const i64 most = ceil_div(length, r.lanes * kLeast);
    r.parts = static_cast<int>(std::min(most, kBlocks / blocks));
  }
  r.part = ceil_div(ceil_div(length, r.parts), r.lanes) * r.lanes;
  return r;
}

#if defined(__CUDACC__)

/// Elements of type T as numbers of type C.
template <class T, class C = Compute<T>>
struct Elements {
  const char* data;
  __device__ C operator()(i64 offset) const { return load_as<T, C>(*reinterpret_cast<const T*>(data + offset)); }
};

/// Where a result goes.
struct Output {
  i64 number;  ///< among the positions of Reduction::kept
  char *first, *second;
};

template <class Fold>
__device__ void finish_output(const Fold& fold, const Nest<3>& kept, i64 number, const typename Fold::Acc& acc) {
  i64 at[3];
  kept.locate(number, at);
  fold.finish(acc, Output{number, kept.data[1] + at[1], kept.data[2] + at[2]});
}

template <class Source, class Fold>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(Source source, Fold fold, Reduction r, typename Fold::Acc* partial) {
  using Acc = typename Fold::Acc;
  __shared__ Acc shared[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  const int lane = r.rows ? t % r.lanes : t / r.across;
  const i64 output = static_cast<i64>(blockIdx.x) * r.across + (r.rows ? t / r.lanes : t % r.across);
  const bool active = output < r.kept.total;
  Acc acc = fold.start();
  if (active) {
    i64 base[3];
    r.kept.locate(output, base);
    const i64 end = min(r.reduced.total, (blockIdx.y + i64{1}) * r.part);
#pragma unroll 4
    for (i64 i = blockIdx.y * r.part + lane; i < end; i += r.lanes) {
      i64 at[1];
      r.reduced.locate(i, at);
      fold.step(acc, source(base[0] + at[0]), i);
    }
  }
  int left = r.lanes, unit = lane, apart = r.across;  // what is to be put together, and how far apart it is
  if (r.rows) {
    for (int step = min(r.lanes, kWarp) / 2; step > 0; step /= 2) acc = fold.combine(acc, shuffle_down(acc, step));
    left = r.lanes / kWarp;
    unit = lane / kWarp;
    apart = kWarp;
  }
  for (left /= 2; left > 0; left /= 2) {
    shared[t] = acc;
    __syncthreads();
    if (unit < left) acc = fold.combine(acc, shared[t + left * apart]);
    __syncthreads();
  }
  if (lane != 0 || !active) return;
  if (partial) {
    partial[output * r.parts + blockIdx.y] = acc;
  } else {
    finish_output(fold, r.kept, output, acc);
  }
}

/// A warp for each output puts its parts together.
template <class Fold>
__global__ void __launch_bounds__(kThreads)
    finish_kernel(Fold fold, Nest<3> kept, const typename Fold::Acc* partial, int parts) {
  const Team team(kWarp);
  typename Fold::Acc acc = fold.start();
  if (team.line < kept.total) {
    for (int p = team.lane; p < parts; p += kWarp) acc = fold.combine(acc, partial[team.line * parts + p]);
  }
  for (int step = kWarp / 2; step > 0; step /= 2) acc = fold.combine(acc, shuffle_down(acc, step));
  if (team.lane == 0 && team.line < kept.total) finish_output(fold, kept, team.line, acc);
}

template <class Source, class Fold>
void run_reduction(KernelContext& context, const Reduction& r, const Source& source, const Fold& fold) {
  if (r.kept.total == 0) return;
  using Acc = typename Fold::Acc;
  Acc* partial = nullptr;
  if (r.parts > 1) {
    partial = static_cast<Acc*>(context.scratch(static_cast<std::size_t>(r.kept.total * r.parts) * sizeof(Acc)));
  }
  const dim3 grid(static_cast<unsigned>(ceil_div(r.kept.total, r.across)), static_cast<unsigned>(r.parts));
  launch(context, {.grid = grid, .block = kThreads}, reduce_kernel<Source, Fold>, source, fold, r, partial);
  if (partial) {
    launch(context, team_shape(r.kept.total, kWarp), finish_kernel<Fold>, fold, r.kept, partial, r.parts);
  }
}

#endif  // __CUDACC__

}  // namespace tenon::cuda
