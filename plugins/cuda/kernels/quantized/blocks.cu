// pack_blocks, unpack_blocks: float32 as bytes of the dynamic map and back, a scale for each block of values. A block
// of values is a block of threads, one value each; the map goes to the kernel by value, and to the block's shared
// memory.
#include <tenon/kernel/attributes/quantization.h>
#include <tenon/kernel/dynamic_map.h>

#include <algorithm>
#include <cmath>

#include "kernels/dtypes.cuh"
#include "kernels/launch.h"

namespace tenon::cuda {
namespace {

static_assert(kBlockValues == kThreads && kMapCodes == kThreads, "a thread for each value of a block, and of the map");

struct Table {
  float numbers[kMapCodes];
};

Table table_of(const std::array<float, kMapCodes>& numbers) {
  Table table;
  std::ranges::copy(numbers, table.numbers);
  return table;
}

/// The larger one; nan where one of them is.
__device__ float larger_or_nan(float a, float b) { return isnan(a) || a >= b ? a : b; }

__global__ void __launch_bounds__(kThreads)
    pack_kernel(Table thresholds, const float* x, u8* codes, float* scales, i64 count, i64 blocks) {
  __shared__ float table[kMapCodes], shared[kThreads];
  const int self = static_cast<int>(threadIdx.x);
  table[self] = thresholds.numbers[self];
  for (i64 block = blockIdx.x; block < blocks; block += gridDim.x) {
    const i64 i = block * kBlockValues + self;
    const float value = i < count ? x[i] : 0.0f;
    shared[self] = isfinite(value) ? fabsf(value) : NAN;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (self < half) shared[self] = larger_or_nan(shared[self], shared[self + half]);
    }
    __syncthreads();
    const float largest = shared[0];
    __syncthreads();  // all have read it before the next block's values come
    if (self == 0) scales[block] = largest;
    if (i >= count) continue;
    const float y = value / (largest == 0.0f ? 1.0f : largest);
    int code = 0;  // the last threshold that is not above y: the first one is below all
    for (int bit = static_cast<int>(kMapCodes) / 2; bit > 0; bit /= 2) {
      if (y >= table[code + bit]) code += bit;
    }
    codes[i] = static_cast<u8>(code);
  }
}

__global__ void __launch_bounds__(kThreads)
    unpack_kernel(Table map, const u8* codes, const float* scales, float* y, i64 count) {
  __shared__ float table[kMapCodes];
  table[threadIdx.x] = map.numbers[threadIdx.x];
  __syncthreads();
  const i64 all = static_cast<i64>(gridDim.x) * kThreads;
  for (i64 i = static_cast<i64>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += all)
    y[i] = table[codes[i]] * scales[i / kBlockValues];
}

void pack_blocks(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const bool is_signed = static_cast<const BlocksAttributes*>(attributes)->is_signed;
  const i64 count = inputs[0].element_count(), blocks = outputs[1].element_count();
  launch(context, {.grid = blocks_for(blocks, 1), .block = kThreads}, pack_kernel,
         table_of(dynamic_thresholds(is_signed)), inputs[0].as<const float>(), outputs[0].as<u8>(),
         outputs[1].as<float>(), count, blocks);
}

void unpack_blocks(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const bool is_signed = static_cast<const BlocksAttributes*>(attributes)->is_signed;
  const i64 count = outputs[0].element_count();
  launch(context, {.grid = blocks_for(count), .block = kThreads}, unpack_kernel, table_of(dynamic_map(is_signed)),
         inputs[0].as<const u8>(), inputs[1].as<const float>(), outputs[0].as<float>(), count);
}

}  // namespace

void add_quantized_blocks(const KernelSink& sink) {
  sink.add(sink.host, "pack_blocks", &pack_blocks);
  sink.add(sink.host, "unpack_blocks", &unpack_blocks);
}

}  // namespace tenon::cuda
