// weight_only_linear: products of float32 with weights of 8 or 4 bits, which become floats where they are multiplied:
// what is read from memory are the integers. Of few rows of x a warp has one row of the weights, and reads it once, 16
// bytes a lane; of many rows tiles are multiplied in shared memory.
#include <tenon/kernel/attributes/quantization.h>

#include "kernels/launch.h"
#include "kernels/linalg/tiles.cuh"
#include "kernels/quantized/rounding.cuh"
#include "kernels/reduce/packed_lines.cuh"

namespace tenon::cuda {
namespace {

using namespace tiles;

constexpr int kFewRows = 8;  // of x, whose sums a lane keeps
constexpr int kAccess = 16;  // bytes
constexpr int kRun = 8;      // slices whose sum is added as one, so that it keeps its digits

/// (outputs, columns) of kBits.
template <int kBits>
struct Weights {
  static constexpr int kOfAccess = kAccess * 8 / kBits;
  const u8* values;
  const float* scales;
  i64 columns, group;

  __host__ __device__ i64 row_bytes() const { return kBits == 8 ? columns : (columns + 1) / 2; }
#if defined(__CUDACC__)
  __device__ float scale(i64 output, i64 k) const { return scales[output * (columns / group) + k / group]; }
  __device__ float at(i64 output, i64 k) const {
    const u8 byte = values[output * row_bytes() + (kBits == 8 ? k : k / 2)];
    return static_cast<float>(number(byte, static_cast<int>(k % 2))) * scale(output, k);
  }
  /// Weight i of a word, without its scale.
  __device__ static float of_word(u32 word, int i) {
    const auto byte = static_cast<u8>(word >> (kBits == 8 ? 8 * i : 8 * (i / 2)));
    return static_cast<float>(number(byte, i % 2));
  }

 private:
  __device__ static i32 number(u8 byte, int half) {
    return kBits == 8 ? i32{static_cast<i8>(byte)} : (byte >> (4 * half) & 15) - 8;
  }
#endif
};

/// A warp an output, for up to kFewRows rows. packed: weights and rows of x in aligned accesses, each of one group.
template <int kBits>
__global__ void __launch_bounds__(kThreads)
    few_rows_kernel(Weights<kBits> w, const float* x, const float* bias, float* y, int rows, i64 outputs, bool packed) {
  constexpr int kOfWord = 32 / kBits;
  const i64 output = (static_cast<i64>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (output >= outputs) return;
  float sums[kFewRows] = {};
  if (packed) {
    const auto* const from = reinterpret_cast<const Packed<u32, 4>*>(w.values + output * w.row_bytes());
    for (i64 at = lane; at < w.columns / w.kOfAccess; at += kWarp) {
      const Packed<u32, 4> words = from[at];
      const i64 first = at * w.kOfAccess;
      const float scale = w.scale(output, first);
#pragma unroll
      for (int part = 0; part < w.kOfAccess / 4; ++part) {
        float numbers[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int one = 4 * part + i;
          numbers[i] = w.of_word(words.elements[one / kOfWord], one % kOfWord) * scale;
        }
#pragma unroll
        for (int r = 0; r < kFewRows; ++r) {
          if (r >= rows) break;
          const auto values = *reinterpret_cast<const Packed<float, 4>*>(x + r * w.columns + first + 4 * part);
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[r] += values.elements[i] * numbers[i];
        }
      }
    }
  } else {
    for (i64 k = lane; k < w.columns; k += kWarp) {
      const float number = w.at(output, k);
#pragma unroll
      for (int r = 0; r < kFewRows; ++r) {
        if (r < rows) sums[r] += x[r * w.columns + k] * number;
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kFewRows; ++r) {
    for (int step = kWarp / 2; step > 0; step /= 2) sums[r] += __shfl_xor_sync(0xffffffffu, sums[r], step);
    if (lane == 0 && r < rows) y[r * outputs + output] = sums[r] + (bias != nullptr ? bias[output] : 0.0f);
  }
}

/// slice.of[k][c] = weight (first + c, from + k); 0 where there is none.
template <int kBits>
__device__ void load_weights(Slice<float>& slice, const Weights<kBits>& w, i64 first, i64 outputs, i64 from) {
  for (int t = static_cast<int>(threadIdx.x); t < kSlice * kTile<float>; t += kThreads) {
    const int k = t % kSlice, c = t / kSlice;
    slice.of[k][c] = first + c < outputs && from + k < w.columns ? w.at(first + c, from + k) : 0.0f;
  }
}

template <int kBits>
__global__ void __launch_bounds__(kThreads)
    tiled_kernel(Weights<kBits> w, const float* x, const float* bias, float* y, i64 rows, i64 outputs) {
  __shared__ Slice<float> left, right;
  const i64 column_tiles = (outputs + kTile<float> - 1) / kTile<float>;
  const i64 row = blockIdx.x / column_tiles * kTile<float>, column = blockIdx.x % column_tiles * kTile<float>;
  const int there = static_cast<int>(min(i64{kTile<float>}, rows - row));
  Sums<float> sums, run;
  clear<float>(sums);
  for (i64 from = 0; from < w.columns;) {
    clear<float>(run);
    for (int slice = 0; slice < kRun && from < w.columns; ++slice, from += kSlice) {
      __syncthreads();  // the slices are not in use any more
      const Rows<float> of_x{x + row * w.columns + from, w.columns, there};
      load_transposed(left, of_x, 0, static_cast<int>(min(i64{kSlice}, w.columns - from)));
      load_weights(right, w, column, outputs, from);
      __syncthreads();
      add_slice<float>(run, left, right);
    }
#pragma unroll
    for (int i = 0; i < kSide<float>; ++i) {
#pragma unroll
      for (int j = 0; j < kSide<float>; ++j) sums[i][j] += run[i][j];
    }
  }
#pragma unroll
  for (int i = 0; i < kSide<float>; ++i) {
#pragma unroll
    for (int j = 0; j < kSide<float>; ++j) {
      const i64 r = row + own_row<float>() + i, c = column + own_column<float>() + j;
      if (r < rows && c < outputs) y[r * outputs + c] = sums[i][j] + (bias != nullptr ? bias[c] : 0.0f);
    }
  }
}

template <int kBits>
void multiply(KernelContext& context, const TensorView& y, Views inputs, i64 group) {
  const TensorView &x = inputs[0], &added = inputs[3];
  const i64 rows = x.sizes[0], columns = x.sizes[1], outputs = y.sizes[1];
  const Weights<kBits> w{inputs[1].as<const u8>(), inputs[2].as<const float>(), columns, group > 0 ? group : columns};
  const float* const bias = added.defined() ? added.as<const float>() : nullptr;
  if (rows > kFewRows) {
    const i64 tiles = ceil_div(rows, kTile<float>) * ceil_div(outputs, kTile<float>);
    return launch(context, {.grid = static_cast<unsigned>(tiles), .block = kThreads}, tiled_kernel<kBits>, w,
                  x.as<const float>(), bias, y.as<float>(), rows, outputs);
  }
  const bool packed = columns % w.kOfAccess == 0 && w.group % w.kOfAccess == 0 && is_aligned(w.values, kAccess) &&
                      is_aligned(x.data, kAccess);
  launch(context, {.grid = static_cast<unsigned>(ceil_div(outputs * kWarp, kThreads)), .block = kThreads},
         few_rows_kernel<kBits>, w, x.as<const float>(), bias, y.as<float>(), static_cast<int>(rows), outputs, packed);
}

void weight_only_linear(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const WeightOnlyAttributes*>(attributes);
  if (outputs[0].element_count() == 0) return;
  if (a.bits == 4) return multiply<4>(context, outputs[0], inputs, a.group);
  multiply<8>(context, outputs[0], inputs, a.group);
}

}  // namespace

void add_weight_only(const KernelSink& sink) { sink.add(sink.host, "weight_only_linear", &weight_only_linear); }

}  // namespace tenon::cuda
