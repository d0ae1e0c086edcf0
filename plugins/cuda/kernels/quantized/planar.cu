// quantized_conv_planar: a convolution of few channels, planes in and planes out. A thread has one position and a few
// outputs of it: it gathers its window, four bytes to a word, and multiplies each word by the weights of all of them,
// which are in shared memory. Neighbouring threads have neighbouring positions.
#include "kernels/launch.h"
#include "kernels/offsets.cuh"
#include "kernels/quantized/windows.cuh"
#include "kernels/reduce/team.cuh"

namespace tenon::cuda {
namespace {

constexpr int kOutputs = kWarps;  // of a thread; a warp sums up the weights of each
constexpr int kWords = 256;       // of a window that are in shared memory at a time

/// Words [first, first + words) of the weights of kOutputs outputs, in the order (channel, row, column) in which they
/// lie; zeros behind them.
__device__ void load_weights(const Windows& s, const u8* w, int output, int first, int words,
                             u32 (&to)[kOutputs][kWords]) {
  const int terms = s.terms();
  for (int t = static_cast<int>(threadIdx.x); t < kOutputs * words; t += kThreads) {
    const int own = t / words, word = t % words;
    u32 value = 0;
    for (int k = 0; k < 4; ++k) {
      const int term = 4 * (first + word) + k;
      if (output + own < s.outputs && term < terms) value |= u32{w[i64{output + own} * terms + term]} << (8 * k);
    }
    to[own][word] = value;
  }
}

/// The window of one position, byte by byte.
class Window {
 public:
  __device__ Window(const Windows& s, const u8* x, i64 position) {
    if (position >= s.windows) return;
    const int plane = s.out_height * s.out_width, at = static_cast<int>(position % plane);
    next_ = x + position / plane * s.channels * s.height * s.width;
    top_ = at / s.out_width * s.stride[0] - s.padding[0];
    left_ = at % s.out_width * s.stride[1] - s.padding[1];
  }
  /// Behind the last one come zero points, whose weights are 0.
  __device__ u32 next(const Windows& s, u32 zeros) {
    u32 value = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int h = top_ + i_ * s.dilation[0], v = left_ + j_ * s.dilation[1];
      const bool inside = next_ != nullptr && channel_ < s.channels && s.has(h, v);
      value |= (inside ? u32{next_[i64{h} * s.width + v]} : zeros & 255u) << (8 * k);
      if (++j_ < s.kernel_width) continue;
      j_ = 0;
      if (++i_ < s.kernel_height) continue;
      i_ = 0;
      ++channel_;
      if (next_ != nullptr) next_ += i64{s.height} * s.width;
    }
    return value;
  }

 private:
  const u8* next_ = nullptr;  // the channel's plane; null: there is no such position
  int top_ = 0, left_ = 0, channel_ = 0, i_ = 0, j_ = 0;
};

__global__ void __launch_bounds__(kThreads)
    planar_kernel(Windows s, Scaling<float> scaling, const u8* x, const u8* w, float* y) {
  __shared__ u32 weights[kOutputs][kWords];
  __shared__ i32 weight_sums[kOutputs];
  const int self = static_cast<int>(threadIdx.x), warp = self / kWarp, lane = self % kWarp;
  const i64 blocks = (s.outputs + kOutputs - 1) / kOutputs;
  const i64 position = blockIdx.x / blocks * kThreads + self;
  const int output = static_cast<int>(blockIdx.x % blocks) * kOutputs;
  const int all = (s.terms() + 3) / 4;
  const u32 zeros = scaling.zeros();
  Window window(s, x, position);
  i32 sums[kOutputs] = {}, weight_sum = 0;
  for (int first = 0; first < all; first += kWords) {
    const int words = min(kWords, all - first);
    __syncthreads();  // the weights are not in use any more
    load_weights(s, w, output, first, words, weights);
    __syncthreads();
    for (int t = lane; t < words; t += kWarp)
      weight_sum = add_products<i8, i8>(weights[warp][t], 0x01010101u, weight_sum);
    for (int t = 0; t < words; ++t) {
      const u32 value = window.next(s, zeros);
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) sums[o] = add_products<u8, i8>(value, weights[o][t], sums[o]);
    }
  }
  for (int step = kWarp / 2; step > 0; step /= 2) weight_sum += __shfl_xor_sync(kWholeWarp, weight_sum, step);
  if (lane == 0) weight_sums[warp] = weight_sum;
  __syncthreads();
  if (position >= s.windows) return;
  const int plane = s.out_height * s.out_width;
  float* const to = y + (position / plane * s.outputs + output) * plane + position % plane;
#pragma unroll
  for (int o = 0; o < kOutputs; ++o) {
    if (output + o < s.outputs)
      to[i64{o} * plane] = scaling.value(sums[o] - scaling.x_zero * weight_sums[o], output + o);
  }
}

void quantized_conv_planar(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const QuantizedConvAttributes*>(attributes);
  const TensorView &x = inputs[0], &w = inputs[1], &y = outputs[0];
  if (y.element_count() == 0) return;
  if (x.dtype != Dtype::kUInt8) refuse_dtype("quantized_conv_planar", x.dtype);
  const Windows s(x, w, y, a.window);
  const i64 blocks = ceil_div(s.windows, kThreads) * ceil_div(s.outputs, kOutputs);
  launch(context, {.grid = static_cast<unsigned>(blocks), .block = kThreads}, planar_kernel, s,
         Scaling<float>(inputs[2], inputs[3], a), x.as<const u8>(), w.as<const u8>(), y.as<float>());
}

}  // namespace

void add_quantized_planar(const KernelSink& sink) {
  sink.add(sink.host, "quantized_conv_planar", &quantized_conv_planar);
}

}  // namespace tenon::cuda
