// quantized_conv: a convolution of integers of 8 bits as a product of rows, summed in int32 by instructions that add
// four products of bytes each.
//
// A row is a window of x, its bytes in the order (kernel row, kernel column, channel); weights are brought into that
// order where they do not lie so. Of 64 windows and 64 outputs 64 bytes each are in shared memory at a time, as words.
// Outside of the picture stands the zero point: all windows are whole then, and what the zero point adds to a sum is
// its product with the sum of the output's weights, which is made as these pass by.
#include "kernels/launch.h"
#include "kernels/linalg/tiles.cuh"
#include "kernels/offsets.cuh"
#include "kernels/quantized/windows.cuh"
#include "kernels/reduce/team.cuh"

namespace tenon::cuda {
namespace {

using namespace tiles;

constexpr int kChunk = 16;                    // bytes of a row that a thread loads at once
constexpr int kChunks = kSlice * 4 / kChunk;  // of a row in a slice
constexpr int kFewRows = 8;                   // of a linear layer, whose sums a lane keeps
constexpr int kFewOutputs = 8;                // of a group: a tile of 64 would be empty
static_assert(kTile<i32> * kChunks == kThreads, "a chunk of each operand for each thread");

struct alignas(kChunk) Chunk {
  u32 words[kChunk / 4];
};

/// How many bytes of x lie side by side and aligned in whole parts of a row's chunk.
int access_of(const Windows& s, const void* x) {
  for (const int bytes : {kChunk, 4}) {
    if (s.in_group % bytes == 0 && s.channels % bytes == 0 && is_aligned(x, static_cast<std::size_t>(bytes)))
      return bytes;
  }
  return 1;
}

/// One row: a window's bytes of the group's channels.
struct Row {
  const u8* picture = nullptr;  ///< its first byte of the group; null: there is no such window
  int top = 0, left = 0;

  __device__ Row(const Windows& s, const u8* x, i64 window, int group) {
    if (window >= s.windows) return;
    const int plane = s.out_height * s.out_width, at = static_cast<int>(window % plane);
    picture = x + window / plane * s.height * s.width * s.channels + group * s.in_group;
    top = at / s.out_width * s.stride[0] - s.padding[0];
    left = at % s.out_width * s.stride[1] - s.padding[1];
  }

  /// Bytes from `from` on.
  template <class Part>
  __device__ void read(const Windows& s, int from, u32 zeros, Chunk& chunk) const {
    constexpr int kBytes = static_cast<int>(sizeof(Part));
    int channel = from % s.in_group, i = from / s.in_group / s.kernel_width, j = from / s.in_group % s.kernel_width;
    auto* const parts = reinterpret_cast<Part*>(chunk.words);
#pragma unroll
    for (int k = 0; k < kChunk / kBytes; ++k) {
      const int h = top + i * s.dilation[0], v = left + j * s.dilation[1];
      if (picture != nullptr && i < s.kernel_height && s.has(h, v)) {
        parts[k] = *reinterpret_cast<const Part*>(picture + (i64{h} * s.width + v) * s.channels + channel);
      } else {
        memset(&parts[k], static_cast<int>(zeros & 255), sizeof(Part));
      }
      channel += kBytes;
      if (channel < s.in_group) continue;
      channel = 0;
      if (++j < s.kernel_width) continue;
      j = 0;
      ++i;
    }
  }
};

/// (outputs, in_group, kernel) as (outputs, kernel, in_group), a row each `pitch` bytes; zeros behind it.
__global__ void __launch_bounds__(kThreads)
    order_weights(const u8* w, u8* to, i64 count, int in_group, int window, int pitch) {
  for (i64 i = first_item(); i < count; i += all_items()) {
    const i64 output = i / pitch;
    const int term = static_cast<int>(i % pitch), channel = term % in_group, tap = term / in_group;
    to[i] = tap < window ? w[(output * in_group + channel) * window + tap] : u8{0};
  }
}

/// `kSlice` words of each row side by side as a slice wants them.
__device__ void put(Slice<i32>& slice, const Chunk& chunk) {
  const int row = static_cast<int>(threadIdx.x) / kChunks, first = static_cast<int>(threadIdx.x) % kChunks * 4;
#pragma unroll
  for (int k = 0; k < 4; ++k) slice.of[first + k][row] = static_cast<i32>(chunk.words[k]);
}

template <class X>
__device__ void add_words(Sums<i32>& sums, const Slice<i32>& left, const Slice<i32>& right) {
  const int row = own_row<i32>(), column = own_column<i32>();
#pragma unroll
  for (int k = 0; k < kSlice; ++k) {
    u32 a[kSide<i32>], b[kSide<i32>];
#pragma unroll
    for (int i = 0; i < kSide<i32>; ++i) a[i] = static_cast<u32>(left.of[k][row + i]);
#pragma unroll
    for (int j = 0; j < kSide<i32>; ++j) b[j] = static_cast<u32>(right.of[k][column + j]);
#pragma unroll
    for (int i = 0; i < kSide<i32>; ++i) {
#pragma unroll
      for (int j = 0; j < kSide<i32>; ++j) sums[i][j] = add_products<X, i8>(a[i], b[j], sums[i][j]);
    }
  }
}

/// w: (outputs, pitch), aligned to chunks. packed: four outputs of y are one aligned access.
template <class X, class Y>
__global__ void __launch_bounds__(kThreads)
    tiled_kernel(Windows s, Scaling<Y> scaling, const u8* x, const u8* w, Y* y, int access, int pitch, bool packed) {
  __shared__ Slice<i32> left, right;
  __shared__ i32 weight_sums[kTile<i32>];
  const i64 column_tiles = (s.out_group + kTile<i32> - 1) / kTile<i32>;
  const i64 row_tiles = (s.windows + kTile<i32> - 1) / kTile<i32>;
  const int group = static_cast<int>(blockIdx.x / (row_tiles * column_tiles));
  const i64 first_row = blockIdx.x / column_tiles % row_tiles * kTile<i32>;
  const int first_column = static_cast<int>(blockIdx.x % column_tiles) * kTile<i32>;
  // What this thread loads: a chunk of one row, and one of the weights of one output.
  const int line = static_cast<int>(threadIdx.x) / kChunks, part = static_cast<int>(threadIdx.x) % kChunks * kChunk;
  const Row row(s, x, first_row + line, group);
  const bool has_output = first_column + line < s.out_group;
  const u8* const of_output = w + (i64{group} * s.out_group + first_column + line) * pitch;
  const u32 zeros = scaling.zeros();

  Sums<i32> sums;
  clear<i32>(sums);
  i32 weight_sum = 0;
  for (int from = part; from - part < pitch; from += kSlice * 4) {
    Chunk of_x{}, of_w{};
    if (from < pitch) {
      if (access == kChunk) {
        row.read<Chunk>(s, from, zeros, of_x);
      } else if (access == 4) {
        row.read<u32>(s, from, zeros, of_x);
      } else {
        row.read<u8>(s, from, zeros, of_x);
      }
      if (has_output) of_w = *reinterpret_cast<const Chunk*>(of_output + from);
    }
#pragma unroll
    for (const u32 word : of_w.words) weight_sum = add_products<i8, i8>(word, 0x01010101u, weight_sum);
    __syncthreads();  // the slices are not in use any more
    put(left, of_x);
    put(right, of_w);
    __syncthreads();
    add_words<X>(sums, left, right);
  }
  for (int lane = kChunks / 2; lane > 0; lane /= 2) weight_sum += __shfl_xor_sync(kWholeWarp, weight_sum, lane);
  if (part == 0) weight_sums[line] = weight_sum;
  __syncthreads();

  const int own_column = first_column + tiles::own_column<i32>();
  const int there = min(kSide<i32>, s.out_group - own_column);
  const int first = group * s.out_group + own_column;
#pragma unroll
  for (int i = 0; i < kSide<i32>; ++i) {
    const i64 window = first_row + own_row<i32>() + i;
    if (window >= s.windows) break;
    Packed<Y, kSide<i32>> values;
#pragma unroll
    for (int j = 0; j < kSide<i32>; ++j) {
      if (j < there)
        values.elements[j] =
            scaling.value(sums[i][j] - scaling.x_zero * weight_sums[own_column - first_column + j], first + j);
    }
    Y* const to = y + window * s.outputs + first;
    if (packed && there == kSide<i32>) {
      *reinterpret_cast<Packed<Y, kSide<i32>>*>(to) = values;
      continue;
    }
#pragma unroll
    for (int j = 0; j < kSide<i32>; ++j) {
      if (j < there) to[j] = values.elements[j];
    }
  }
}

/// A linear layer of few rows, all of whole chunks: a warp an output, whose weights are read once.
template <class X, class Y>
__global__ void __launch_bounds__(kThreads)
    few_rows_kernel(Scaling<Y> scaling, const u8* x, const u8* w, Y* y, int rows, int outputs, int terms) {
  const i64 output = (static_cast<i64>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (output >= outputs) return;
  i32 sums[kFewRows] = {}, weight_sum = 0;
  for (int from = lane * kChunk; from < terms; from += kWarp * kChunk) {
    const Chunk of_w = *reinterpret_cast<const Chunk*>(w + output * terms + from);
#pragma unroll
    for (const u32 word : of_w.words) weight_sum = add_products<i8, i8>(word, 0x01010101u, weight_sum);
#pragma unroll
    for (int r = 0; r < kFewRows; ++r) {
      if (r >= rows) break;
      const Chunk of_x = *reinterpret_cast<const Chunk*>(x + i64{r} * terms + from);
#pragma unroll
      for (int k = 0; k < kChunk / 4; ++k) sums[r] = add_products<X, i8>(of_x.words[k], of_w.words[k], sums[r]);
    }
  }
  for (int step = kWarp / 2; step > 0; step /= 2) weight_sum += __shfl_xor_sync(kWholeWarp, weight_sum, step);
#pragma unroll
  for (int r = 0; r < kFewRows; ++r) {
    for (int step = kWarp / 2; step > 0; step /= 2) sums[r] += __shfl_xor_sync(kWholeWarp, sums[r], step);
    if (lane == 0 && r < rows)
      y[i64{r} * outputs + output] = scaling.value(sums[r] - scaling.x_zero * weight_sum, static_cast<int>(output));
  }
}

/// A thread sums up an element: of groups that have few outputs.
template <class X, class Y>
__global__ void __launch_bounds__(kThreads)
    direct_kernel(Windows s, Scaling<Y> scaling, const X* x, const i8* w, Y* y, i64 count) {
  for (i64 at = first_item(); at < count; at += all_items()) {
    const int output = static_cast<int>(at % s.outputs), group = output / s.out_group;
    const Row row(s, reinterpret_cast<const u8*>(x), at / s.outputs, group);
    const i8* weight = w + i64{output} * s.terms();
    i32 sum = 0;
    for (int c = 0; c < s.in_group; ++c) {
      for (int i = 0; i < s.kernel_height; ++i) {
        for (int j = 0; j < s.kernel_width; ++j, ++weight) {
          const int h = row.top + i * s.dilation[0], v = row.left + j * s.dilation[1];
          if (!s.has(h, v)) continue;
          const auto value = static_cast<X>(row.picture[(i64{h} * s.width + v) * s.channels + c]);
          sum += (i32{value} - scaling.x_zero) * i32{*weight};
        }
      }
    }
    y[at] = scaling.value(sum, output);
  }
}

template <class X, class Y>
void convolve(KernelContext& context, const Windows& s, Views outputs, Views inputs, const QuantizedConvAttributes& a) {
  const TensorView &x = inputs[0], &w = inputs[1], &y = outputs[0];
  const Scaling<Y> scaling(inputs[2], inputs[3], a);
  if (s.groups > 1 && s.out_group < kFewOutputs) {
    const i64 count = y.element_count();
    return launch(context, {.grid = blocks_for(count), .block = kThreads}, direct_kernel<X, Y>, s, scaling,
                  x.as<const X>(), w.as<const i8>(), y.as<Y>(), count);
  }
  const int pitch = static_cast<int>(ceil_div(s.terms(), kChunk)) * kChunk;
  const u8* weights = w.as<const u8>();
  const bool in_order = s.kernel_height * s.kernel_width == 1 && pitch == s.terms() && is_aligned(w.data, kChunk);
  if (in_order && s.are_rows() && s.windows <= kFewRows && is_aligned(x.data, kChunk)) {
    return launch(context, {.grid = static_cast<unsigned>(ceil_div(s.outputs * kWarp, kThreads)), .block = kThreads},
                  few_rows_kernel<X, Y>, scaling, x.as<const u8>(), weights, y.as<Y>(), static_cast<int>(s.windows),
                  s.outputs, pitch);
  }
  if (!in_order) {
    const i64 count = i64{s.outputs} * pitch;
    auto* const ordered = static_cast<u8*>(context.scratch(static_cast<std::size_t>(count)));
    launch(context, {.grid = blocks_for(count), .block = kThreads}, order_weights, weights, ordered, count,
           s.in_group > 0 ? s.in_group : 1, s.kernel_height * s.kernel_width, pitch);
    weights = ordered;
  }
  const bool packed = s.out_group % kSide<i32> == 0 && is_aligned(y.data, kSide<i32> * sizeof(Y));
  const i64 tiles = s.groups * ceil_div(s.windows, kTile<i32>) * ceil_div(s.out_group, kTile<i32>);
  launch(context, {.grid = static_cast<unsigned>(tiles), .block = kThreads}, tiled_kernel<X, Y>, s, scaling,
         x.as<const u8>(), weights, y.as<Y>(), access_of(s, x.data), pitch, packed);
}

void quantized_conv(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const QuantizedConvAttributes*>(attributes);
  const TensorView &x = inputs[0], &y = outputs[0];
  if (y.element_count() == 0) return;
  const Windows s(x, inputs[1], y, a.window);
  bytes_only("quantized_conv", x.dtype, [&]<class X>(Type<X>) {
    if (y.dtype == Dtype::kFloat32) return convolve<X, float>(context, s, outputs, inputs, a);
    bytes_only("quantized_conv", y.dtype, [&]<class Y>(Type<Y>) { convolve<X, Y>(context, s, outputs, inputs, a); });
  });
}

}  // namespace

void add_quantized_convolution(const KernelSink& sink) { sink.add(sink.host, "quantized_conv", &quantized_conv); }

}  // namespace tenon::cuda
