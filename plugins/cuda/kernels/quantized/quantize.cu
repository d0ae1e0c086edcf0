// quantize, dequantize: float32 to integers of 8 bits and back, with one scale or one for each index of a dimension.
// Where operands lie dense and aligned, four floats are one access and their four bytes another.
#include <tenon/kernel/attributes/quantization.h>

#include "kernels/launch.h"
#include "kernels/offsets.cuh"
#include "kernels/quantized/rounding.cuh"
#include "kernels/reduce/packed_lines.cuh"

namespace tenon::cuda {
namespace {

constexpr int kPacket = 4;          // elements that a thread takes at once
constexpr int kTilePositions = 64;  // of a picture, whose channels are turned together
constexpr int kTileChannels = 32;

/// Which scale an element has: element i of (outer, channels, inner) that of channel i / inner % channels.
struct Channels {
  const float* scales;  ///< null: one for all
  const i32* zeros;
  float scale;
  i32 zero;
  i64 inner, count;

  __device__ i64 of(i64 i) const { return scales == nullptr ? 0 : i / inner % count; }
  __device__ float scale_of(i64 channel) const { return scales == nullptr ? scale : scales[channel]; }
  __device__ i32 zero_of(i64 channel) const { return scales == nullptr ? zero : zeros[channel]; }
  /// Whether the elements of a packet, which begins at a multiple of its size, have one scale.
  bool share_packets() const { return scales == nullptr || inner % kPacket == 0; }
};

Channels channels_of(const TensorView& x, Views inputs, const QuantizeAttributes& a) {
  Channels channels{nullptr, nullptr, static_cast<float>(a.scale), static_cast<i32>(a.zero_point), 1, 1};
  if (a.axis < 0) return channels;
  channels.scales = inputs[1].as<const float>();
  channels.zeros = inputs[2].as<const i32>();
  channels.count = x.sizes[a.axis];
  for (int d = a.axis + 1; d < x.rank; ++d) channels.inner *= x.sizes[d];
  return channels;
}

template <class Q>
struct Quantizing {
  using From = float;
  using To = Q;
  Rounding<Q> rounding;
  __device__ Quantizing(const Channels& channels, i64 channel)
      : rounding(channels.scale_of(channel), channels.zero_of(channel)) {}
  __device__ Q operator()(float x) const { return rounding(x); }
};

template <class Q>
struct Dequantizing {
  using From = Q;
  using To = float;
  float scale;
  i32 zero;
  __device__ Dequantizing(const Channels& channels, i64 channel)
      : scale(channels.scale_of(channel)), zero(channels.zero_of(channel)) {}
  __device__ float operator()(Q q) const { return static_cast<float>(i32{q} - zero) * scale; }
};

/// y[i] = f(x[i]); packed: both aligned to a packet of their elements, each of which shares a scale.
template <class F>
__global__ void __launch_bounds__(kThreads)
    convert_kernel(Channels channels, const typename F::From* x, typename F::To* y, i64 count, bool packed) {
  using From = typename F::From;
  using To = typename F::To;
  const i64 packets = packed ? count / kPacket : 0;
  for (i64 i = first_item(); i < packets; i += all_items()) {
    const F f(channels, channels.of(i * kPacket));
    const auto from = reinterpret_cast<const Packed<From, kPacket>*>(x)[i];
    Packed<To, kPacket> to;
#pragma unroll
    for (int k = 0; k < kPacket; ++k) to.elements[k] = f(from.elements[k]);
    reinterpret_cast<Packed<To, kPacket>*>(y)[i] = to;
  }
  for (i64 i = packets * kPacket + first_item(); i < count; i += all_items()) y[i] = F(channels, channels.of(i))(x[i]);
}

/// x (N, C, positions) contiguous to y (N, positions, C) in memory: a tile of channels and positions a block.
template <class Q>
__global__ void __launch_bounds__(kThreads)
    turn_kernel(Channels channels, const float* x, Q* y, i64 pictures, i64 depth, i64 positions) {
  __shared__ Q tile[kTilePositions][kTileChannels + 1];
  const Quantizing<Q> f(channels, 0);
  const i64 across = (positions + kTilePositions - 1) / kTilePositions,
            down = (depth + kTileChannels - 1) / kTileChannels;
  for (i64 unit = blockIdx.x; unit < pictures * across * down; unit += gridDim.x) {
    const i64 first_channel = unit % down * kTileChannels, first = unit / down % across * kTilePositions;
    const i64 picture = unit / down / across;
    const int rows = static_cast<int>(min(i64{kTileChannels}, depth - first_channel));
    const int columns = static_cast<int>(min(i64{kTilePositions}, positions - first));
    const float* const from = x + (picture * depth + first_channel) * positions + first;
    for (int t = static_cast<int>(threadIdx.x); t < rows * kTilePositions; t += kThreads) {
      const int c = t / kTilePositions, p = t % kTilePositions;
      if (p < columns) tile[p][c] = f(from[c * positions + p]);
    }
    __syncthreads();
    Q* const to = y + (picture * positions + first) * depth + first_channel;
    for (int t = static_cast<int>(threadIdx.x); t < rows * columns; t += kThreads)
      to[t / rows * depth + t % rows] = tile[t / rows][t % rows];
    __syncthreads();
  }
}

bool same_strides(const TensorView& a, const TensorView& b) {
  for (int d = 0; d < a.rank; ++d) {
    if (a.sizes[d] != 1 && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

template <class F>
void convert(KernelContext& context, const TensorView& y, const TensorView& x, const Channels& channels) {
  using From = typename F::From;
  using To = typename F::To;
  const i64 count = y.element_count();
  const bool packed = channels.share_packets() && is_aligned(x.data, kPacket * sizeof(From)) &&
                      is_aligned(y.data, kPacket * sizeof(To));
  const i64 items = packed ? ceil_div(count, kPacket) : count;
  launch(context, {.grid = blocks_for(items), .block = kThreads}, convert_kernel<F>, channels, x.as<const From>(),
         y.as<To>(), count, packed);
}

void quantize(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const QuantizeAttributes*>(attributes);
  const TensorView &y = outputs[0], &x = inputs[0];
  const Channels channels = channels_of(x, inputs, a);
  bytes_only("quantize", y.dtype, [&]<class Q>(Type<Q>) {
    if (a.axis >= 0 || same_strides(x, y)) return convert<Quantizing<Q>>(context, y, x, channels);
    i64 positions = 1;
    for (int d = 2; d < x.rank; ++d) positions *= x.sizes[d];
    const i64 tiles = x.sizes[0] * ceil_div(positions, kTilePositions) * ceil_div(x.sizes[1], kTileChannels);
    launch(context, {.grid = blocks_for(tiles, 1), .block = kThreads}, turn_kernel<Q>, channels, x.as<const float>(),
           y.as<Q>(), x.sizes[0], x.sizes[1], positions);
  });
}

void dequantize(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const QuantizeAttributes*>(attributes);
  const TensorView &y = outputs[0], &x = inputs[0];
  bytes_only("dequantize", x.dtype,
             [&]<class Q>(Type<Q>) { convert<Dequantizing<Q>>(context, y, x, channels_of(x, inputs, a)); });
}

}  // namespace

void add_quantize(const KernelSink& sink) {
  sink.add(sink.host, "quantize", &quantize);
  sink.add(sink.host, "dequantize", &dequantize);
}

}  // namespace tenon::cuda
