// Kernels for the interpreter's tests, and their launches.
#include "kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace tenon::ptx_test {

namespace {

__global__ void axpy_kernel(float4* y, const float4* x, float a, long n) {
  const long i = blockIdx.x * long{blockDim.x} + threadIdx.x;
  if (i >= n) return;
  float4 v = y[i];
  const float4 u = x[i];
  v.x += a * u.x;
  v.y += a * u.y;
  v.z += a * u.z;
  v.w += a * u.w;
  y[i] = v;
}

__device__ float sum_of_block(float v) {
  __shared__ float parts[32];
  for (int by = 16; by > 0; by /= 2) v += __shfl_down_sync(0xffffffffu, v, by);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0f;
    for (int by = 16; by > 0; by /= 2) v += __shfl_xor_sync(0xffffffffu, v, by);
  }
  __syncthreads();
  return v;
}

__device__ float sum_of_strides(const float* x, long n) {
  float v = 0;
  for (long i = blockIdx.x * long{blockDim.x} + threadIdx.x; i < n; i += long{gridDim.x} * blockDim.x) v += x[i];
  return v;
}

__global__ void block_sums_kernel(float* sums, const float* x, long n) {
  const float v = sum_of_block(sum_of_strides(x, n));
  if (threadIdx.x == 0) sums[blockIdx.x] = v;
}

/// The block that comes last adds up: a fence before, an atomic as the sign.
__global__ void grid_sum_kernel(float* sum, float* parts, unsigned* arrived, const float* x, long n) {
  __shared__ bool last;
  const float v = sum_of_block(sum_of_strides(x, n));
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = v;
    __threadfence();
    last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  const float total = sum_of_block(threadIdx.x < gridDim.x ? parts[threadIdx.x] : 0.0f);
  if (threadIdx.x == 0) *sum = total;
}

__global__ void softmax_kernel(float* y, const float* x, int columns) {
  extern __shared__ float scratch[];
  const float* row = x + blockIdx.x * columns;
  float greatest = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) greatest = fmaxf(greatest, row[i]);
  scratch[threadIdx.x] = greatest;
  for (int by = blockDim.x / 2; by > 0; by /= 2) {
    __syncthreads();
    if (threadIdx.x < by) scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + by]);
  }
  __syncthreads();
  greatest = scratch[0];
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - greatest);
  scratch[threadIdx.x] = sum;
  for (int by = blockDim.x / 2; by > 0; by /= 2) {
    __syncthreads();
    if (threadIdx.x < by) scratch[threadIdx.x] += scratch[threadIdx.x + by];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    y[blockIdx.x * columns + i] = expf(row[i] - greatest) / scratch[0];
}

template <class T>
__global__ void functions_kernel(T* y, const T* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const T v = x[i];
  T* out = y + i * kFunctions;
  out[0] = exp(v);
  out[1] = log(v);
  out[2] = sin(v);
  out[3] = cos(v);
  out[4] = tan(v);
  out[5] = tanh(v);
  out[6] = erf(v);
  out[7] = erfc(v);
  out[8] = lgamma(v);
  out[9] = pow(fabs(v), T(2.5));
  out[10] = atan2(v, T(3));
  out[11] = fmod(v, T(1.5));
  out[12] = round(v);
  out[13] = floor(v);
  out[14] = rint(v);
  out[15] = sqrt(v);
  out[16] = rsqrt(v);
  out[17] = cbrt(v);
  out[18] = log1p(v);
  out[19] = expm1(v);
  out[20] = sinh(v);
  out[21] = asin(v);
  out[22] = v / T(3);
  out[23] = exp2(v);
}

__global__ void halves_kernel(__half* half, __nv_bfloat16* brain, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  half[i] = __float2half_rn(x[i]);
  brain[i] = __float2bfloat16_rn(x[i]);
}

__global__ void wholes_kernel(std::int64_t* y, const std::int32_t* a, const std::int32_t* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const std::int32_t p = a[i];
  const std::int32_t q = b[i];
  const std::int64_t wide = (std::int64_t{p} << 20) ^ q;
  std::int64_t* out = y + i * kWholes;
  out[0] = q == 0 ? 0 : std::int64_t{p} / q;
  out[1] = q == 0 ? 0 : std::int64_t{p} % q;
  out[2] = std::int64_t{p} * q;
  out[3] = __mulhi(p, q);
  out[4] = __popc(p) * 100 + __clz(q);
  out[5] = __brev(p);
  out[6] = __byte_perm(p, q, 0x3715);
  out[7] = __funnelshift_l(p, q, 7);
  out[8] = wide / 12345 + wide % 777;
  out[9] = wide >> (q & 63);
  out[10] = p > q && (p & 1) == 0 ? max(p, q) : min(p, q);
  out[11] = static_cast<std::uint32_t>(p) / 7u + static_cast<std::uint64_t>(wide) / 1000003u;
}

__global__ void histogram_kernel(unsigned* counts, const unsigned char* x, int n) {
  __shared__ unsigned mine[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&counts[i], mine[i]);
}

__global__ void votes_kernel(unsigned* y, const int* x) {
  const int v = x[threadIdx.x];
  const unsigned ballot = __ballot_sync(0xffffffffu, v > 0);
  const unsigned any = __any_sync(0xffffffffu, v == 7);
  const unsigned all = __all_sync(0xffffffffu, v < 100);
  const int up = __shfl_up_sync(0xffffffffu, v, 3);
  const int eighth = __shfl_sync(0xffffffffu, v, 2, 8);
  const int down = __shfl_down_sync(0xffffffffu, v, 5, 16);
  unsigned odd = 0;
  if (threadIdx.x % 2 == 1) odd = __ballot_sync(0xaaaaaaaau, v > 10);
  unsigned* out = y + threadIdx.x * 7;
  out[0] = ballot;
  out[1] = any;
  out[2] = all;
  out[3] = up;
  out[4] = eighth;
  out[5] = down;
  out[6] = odd;
}

__global__ void block_votes_kernel(int* y, const int* x) {
  const int v = x[threadIdx.x];
  int* out = y + threadIdx.x * kBlockVotes;
  out[0] = __syncthreads_count(v > 0);
  out[1] = __syncthreads_and(v > -100);
  out[2] = __syncthreads_and(v != 7);
  out[3] = __syncthreads_or(v == 7);
  // The predicate in the braces is not the one outside, though it has its name.
  const bool positive = v > 0;
  int seven;
  asm volatile("{ .reg .pred %%p1; setp.eq.s32 %%p1, %1, 7; selp.s32 %0, 1, 0, %%p1; }" : "=r"(seven) : "r"(v));
  out[4] = seven * 2 + positive;
}

__global__ void halves_of_words_kernel(std::uint16_t* y) {
  __shared__ unsigned words[32];
  words[threadIdx.x] = threadIdx.x << 16 | 7;
  __syncthreads();
  const volatile std::uint16_t* halves = reinterpret_cast<const volatile std::uint16_t*>(words);
  y[2 * threadIdx.x] = halves[2 * threadIdx.x];
  y[2 * threadIdx.x + 1] = halves[2 * threadIdx.x + 1];
}

__global__ void where_kernel(int* y) {
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  y[block * threads + thread] =
      threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y;
}

template <Mutant kMutant>
__global__ void mutant_kernel(float* y, unsigned* counter) {
  __shared__ float shared[64];
  const unsigned i = threadIdx.x;
  if constexpr (kMutant == Mutant::kBarrierMissing) {
    shared[i] = i;
    y[i] = shared[63 - i];
  } else if constexpr (kMutant == Mutant::kWarpBarrierMissing) {
    shared[i] = i;
    y[i] = shared[i ^ 1];
  } else if constexpr (kMutant == Mutant::kSharedUnwritten) {
    if (i != 5) shared[i] = i;
    __syncthreads();
    y[i] = shared[63 - i];
  } else if constexpr (kMutant == Mutant::kSharedOverrun) {
    shared[i + 1] = i;
    __syncthreads();
    y[i] = shared[i];
  } else if constexpr (kMutant == Mutant::kGlobalOverrun) {
    y[i + 1] = i;
  } else if constexpr (kMutant == Mutant::kMisaligned) {
    if (i == 0) *reinterpret_cast<float4*>(y + 1) = {1, 2, 3, 4};
  } else if constexpr (kMutant == Mutant::kBlocksRace) {
    if (i == 0) y[0] = blockIdx.x;
  } else if constexpr (kMutant == Mutant::kThreadsRace) {
    y[i / 2] = i;
  } else if constexpr (kMutant == Mutant::kFenceMissing) {
    if (i == 0) {
      y[blockIdx.x] = 1;
      if (atomicAdd(counter, 1u) == gridDim.x - 1) y[2] = y[0] + y[1];
    }
  } else if constexpr (kMutant == Mutant::kBarrierDivergent) {
    if (i < 32) {
      __syncthreads();
      y[i] = 1;
    } else {
      y[i] = 2;
      __syncthreads();
      y[i] += 1;
    }
  } else if constexpr (kMutant == Mutant::kBarrierLeftOut) {
    if (i % 2 == 0) __syncthreads();
    y[i] = __shfl_xor_sync(0xffffffffu, i, 1);
  } else if constexpr (kMutant == Mutant::kMaskNamesEnded) {
    if (i % 32 == 9) return;
    y[i] = __shfl_xor_sync(0xffffffffu, i, 1);
  } else if constexpr (kMutant == Mutant::kLaneOutsideMask) {
    if (i < 4) y[i] = __shfl_sync(0xfu, i, 8);
  } else if constexpr (kMutant == Mutant::kOwnLaneMissing) {
    y[i] = __any_sync(0x7fffffffu, i == 0);
  } else if constexpr (kMutant == Mutant::kFirstOfManyReaders) {
    if (i == 0) shared[0] = 1;
    __syncthreads();
    const float all = shared[0];
    if (all == 7) __trap();  // each thread wants the value here
    __syncwarp();
    if (i == 63) shared[0] = 2;
  } else if constexpr (kMutant == Mutant::kReaderInAnotherBlock) {
    const float both = y[i];
    if (both == 7) __trap();
    if (blockIdx.x == 1) y[i] = both + 1;
  } else if constexpr (kMutant == Mutant::kSizesDiffer) {
    if (i == 0) y[0] = 1;
    if (i == 1) reinterpret_cast<unsigned char*>(y)[1] = 2;
  } else if constexpr (kMutant == Mutant::kHalfOfAPacket) {
    if (i == 1) reinterpret_cast<unsigned short*>(y)[7] = 2;
    __syncwarp();
    if (i == 40) *reinterpret_cast<float4*>(y) = {1, 2, 3, 4};
  } else if constexpr (kMutant == Mutant::kConstantWritten) {
    if (i == 0 && blockIdx.x == 0) {
      y[0] = 1;
      y[1] = __ldg(y);
    }
  } else if constexpr (kMutant == Mutant::kEndless) {
    while (atomicAdd(counter, 0) == 0) {
    }
  } else {
    if (i == 3) __trap();
  }
}

template <Mutant kMutant>
void launch_mutant(float* y, unsigned* counter, cudaStream_t stream) {
  mutant_kernel<kMutant><<<2, 64, 0, stream>>>(y, counter);
}

__global__ void empty_kernel() {}

int blocks_for(long n, int threads) { return static_cast<int>((n + threads - 1) / threads); }

}  // namespace

void axpy(float* y, const float* x, float a, long n, cudaStream_t stream) {
  axpy_kernel<<<blocks_for(n / 4, 128), 128, 0, stream>>>(reinterpret_cast<float4*>(y),
                                                          reinterpret_cast<const float4*>(x), a, n / 4);
}
void block_sums(float* sums, const float* x, long n, int blocks, cudaStream_t stream) {
  block_sums_kernel<<<blocks, 128, 0, stream>>>(sums, x, n);
}
void grid_sum(float* sum, float* parts, unsigned* arrived, const float* x, long n, int blocks, cudaStream_t stream) {
  grid_sum_kernel<<<blocks, 128, 0, stream>>>(sum, parts, arrived, x, n);
}
void softmax(float* y, const float* x, int rows, int columns, cudaStream_t stream) {
  softmax_kernel<<<rows, 64, 64 * sizeof(float), stream>>>(y, x, columns);
}
void functions(float* y, const float* x, int n, cudaStream_t stream) {
  functions_kernel<<<blocks_for(n, 64), 64, 0, stream>>>(y, x, n);
}
void functions(double* y, const double* x, int n, cudaStream_t stream) {
  functions_kernel<<<blocks_for(n, 64), 64, 0, stream>>>(y, x, n);
}
void halves(std::uint16_t* half, std::uint16_t* brain, const float* x, int n, cudaStream_t stream) {
  halves_kernel<<<blocks_for(n, 64), 64, 0, stream>>>(reinterpret_cast<__half*>(half),
                                                      reinterpret_cast<__nv_bfloat16*>(brain), x, n);
}
void wholes(std::int64_t* y, const std::int32_t* a, const std::int32_t* b, int n, cudaStream_t stream) {
  wholes_kernel<<<blocks_for(n, 64), 64, 0, stream>>>(y, a, b, n);
}
void histogram(unsigned* counts, const unsigned char* x, int n, cudaStream_t stream) {
  histogram_kernel<<<3, 64, 0, stream>>>(counts, x, n);
}
void votes(unsigned* y, const int* x, cudaStream_t stream) { votes_kernel<<<1, 32, 0, stream>>>(y, x); }
void block_votes(int* y, const int* x, cudaStream_t stream) { block_votes_kernel<<<1, 96, 0, stream>>>(y, x); }
void halves_of_words(std::uint16_t* y, cudaStream_t stream) { halves_of_words_kernel<<<1, 32, 0, stream>>>(y); }
void where(int* y, dim3 grid, dim3 block, cudaStream_t stream) { where_kernel<<<grid, block, 0, stream>>>(y); }

void run_mutant(Mutant mutant, float* y, unsigned* counter, cudaStream_t stream) {
  switch (mutant) {
#define MUTANT(NAME) \
  case Mutant::NAME: \
    return launch_mutant<Mutant::NAME>(y, counter, stream)
    MUTANT(kBarrierMissing);
    MUTANT(kWarpBarrierMissing);
    MUTANT(kSharedUnwritten);
    MUTANT(kSharedOverrun);
    MUTANT(kGlobalOverrun);
    MUTANT(kMisaligned);
    MUTANT(kBlocksRace);
    MUTANT(kThreadsRace);
    MUTANT(kFenceMissing);
    MUTANT(kBarrierDivergent);
    MUTANT(kBarrierLeftOut);
    MUTANT(kMaskNamesEnded);
    MUTANT(kLaneOutsideMask);
    MUTANT(kOwnLaneMissing);
    MUTANT(kTrap);
    MUTANT(kFirstOfManyReaders);
    MUTANT(kReaderInAnotherBlock);
    MUTANT(kSizesDiffer);
    MUTANT(kHalfOfAPacket);
    MUTANT(kConstantWritten);
    MUTANT(kEndless);
#undef MUTANT
  }
}

cudaError_t launch_empty(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
  empty_kernel<<<grid, block, shared_bytes, stream>>>();
  return cudaGetLastError();
}

}  // namespace tenon::ptx_test
