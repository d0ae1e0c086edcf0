// copy and fill: any strides, any two dtypes.
#include "kernels/kernels.h"
#include "kernels/pointwise/element_bits.h"
#include "kernels/pointwise/engine.cuh"

#include <tenon/kernel/attributes/pointwise.h>

namespace tenon::cuda {
namespace {

template <class T>
struct Same {
  __device__ T operator()(T x) const { return x; }
};

constexpr int kTile = 32;
constexpr int kTileRows = 8;  // that a block reads at once

/// Two dimensions of a copy, where the source lies dense along rows and the destination along columns.
struct Plane {
  i64 rows = 0, columns = 0;
  i64 to_row = 0, from_column = 0;  ///< strides of destination and source, in bytes
};

/// By way of a tile in shared memory, so that both sides are met in the order of their memory. `outer` is the other
/// dimensions.
template <class T>
__global__ void __launch_bounds__(kTile* kTileRows) transpose_kernel(const Nest<2> outer, const Plane plane) {
  __shared__ T tile[kTile][kTile + 1];
  const i64 wide = (plane.columns + kTile - 1) / kTile;
  const i64 of_plane = wide * ((plane.rows + kTile - 1) / kTile);
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  for (i64 index = blockIdx.x; index < of_plane * outer.total; index += gridDim.x) {
    i64 at[2];
    outer.locate(index / of_plane, at);
    const i64 row = index % of_plane / wide * kTile, column = index % wide * kTile;
    for (int i = y; i < kTile; i += kTileRows) {
      if (row + x < plane.rows && column + i < plane.columns) {
        const i64 from = at[1] + (row + x) * static_cast<i64>(sizeof(T)) + (column + i) * plane.from_column;
        tile[i][x] = *element<T>(outer.data[1], from);
      }
    }
    __syncthreads();
    for (int i = y; i < kTile; i += kTileRows) {
      if (row + i < plane.rows && column + x < plane.columns) {
        const i64 to = at[0] + (column + x) * static_cast<i64>(sizeof(T)) + (row + i) * plane.to_row;
        *element<T>(outer.data[0], to) = tile[x][i];
      }
    }
    __syncthreads();
  }
}

/// Copies a transposition; false: this is none.
template <class T>
bool transpose(KernelContext& context, const TensorView& destination, const TensorView& source) {
  constexpr i64 kBytes = sizeof(T);
  constexpr u64 kLeast = 8;  // a smaller plane wastes most of a tile
  Nest<2> nest = make_nest<2>({&destination, &source});
  if (nest.rank < 2 || nest.strides[0][0] != kBytes || nest.strides[1][0] <= kBytes) return false;
  int rows = 1;
  while (rows < nest.rank && nest.strides[1][rows] != kBytes) ++rows;
  if (rows == nest.rank || nest.sizes[0].divisor() < kLeast || nest.sizes[rows].divisor() < kLeast) return false;
  const Plane plane{.rows = static_cast<i64>(nest.sizes[rows].divisor()),
                    .columns = static_cast<i64>(nest.sizes[0].divisor()),
                    .to_row = nest.strides[0][rows],
                    .from_column = nest.strides[1][0]};
  nest.drop(rows);
  nest.drop(0);
  const i64 tiles = ceil_div(plane.rows, kTile) * ceil_div(plane.columns, kTile) * nest.total;
  launch(context, {.grid = blocks_for(tiles, 1), .block = dim3(kTile, kTileRows)}, transpose_kernel<T>, nest, plane);
  return true;
}

/// Computed in the source's lane, integers exactly.
template <class C, class From>
void convert(KernelContext& context, const TensorView& destination, const TensorView& source) {
  run_pointwise<AnyLane<C>, From>(context, Same<C>{}, destination, source);
}

void move(KernelContext& context, const TensorView& destination, const PointwiseInput& source) {
  bits_of(destination.dtype,
          [&]<class T>(Type<T>) { run_pointwise<BitsLane<T>, BitsLane<T>>(context, Same<T>{}, destination, source); });
}

void copy(KernelContext& context, Views outputs, Views inputs, const void*) {
  copy_view(context, outputs[0], inputs[0]);
}

void fill(KernelContext& context, Views outputs, Views, const void* attributes) {
  const ScalarValue& value = static_cast<const FillAttributes*>(attributes)->value;
  move(context, outputs[0], PointwiseInput::number(element_bits(outputs[0].dtype, value)));
}

}  // namespace

void copy_view(KernelContext& context, const TensorView& destination, const TensorView& source) {
  if (destination.dtype == source.dtype) {
    bool done = false;
    bits_of(source.dtype, [&]<class T>(Type<T>) { done = transpose<T>(context, destination, source); });
    if (!done) move(context, destination, source);
    return;
  }
  if (source.dtype == Dtype::kFloat64) return convert<double, DoubleLane>(context, destination, source);
  if (is_floating_point(source.dtype)) return convert<float, FloatLane>(context, destination, source);
  convert<i64, IntegerLane>(context, destination, source);
}

void add_copy(const KernelSink& sink) {
  sink.add(sink.host, "copy", &copy);
  sink.add(sink.host, "fill", &fill);
}

}  // namespace tenon::cuda
