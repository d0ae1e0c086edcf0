// Matrices and asynchronous copies, each lane's part written as PTX describes it.
#include "matrices.h"

#include <cuda_runtime.h>

namespace tenon::ptx_test {

namespace {

using u32 = std::uint32_t;

__device__ u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

__device__ void copy_16(u32 to, const void* from, int count) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(count) : "memory");
}
__device__ void copy_8(u32 to, const void* from, int count) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(count) : "memory");
}
__device__ void copy_4(u32 to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ void wait_for_all_but_one() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }
__device__ void wait() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }
__device__ void wait_for_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

template <bool kBrain>
__global__ void product_kernel(float* y, const std::uint16_t* a, const std::uint16_t* b, const float* c) {
  const int group = threadIdx.x / 4, own = threadIdx.x % 4;
  const auto pair = [](const std::uint16_t* p) { return u32{p[0]} | u32{p[1]} << 16; };
  u32 left[4], right[2];
  float sums[4];
  for (int i = 0; i < 4; ++i) left[i] = pair(a + (group + i % 2 * 8) * 16 + own * 2 + i / 2 * 8);
  for (int i = 0; i < 2; ++i) right[i] = pair(b + group * 16 + own * 2 + i * 8);
  for (int i = 0; i < 4; ++i) sums[i] = c[(group + i / 2 * 8) * 8 + own * 2 + i % 2];
  if constexpr (kBrain) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  }
  for (int i = 0; i < 4; ++i) y[(group + i / 2 * 8) * 8 + own * 2 + i % 2] = sums[i];
}

__global__ void matrices_kernel(u32* y, const uint4* x) {
  __shared__ uint4 rows[32];
  rows[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  const u32 row = shared_address(rows + threadIdx.x);
  u32* const out = y + threadIdx.x * kMatrixWords;
  u32 w[kMatrixWords];
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(w[0]) : "r"(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(w[1]), "=r"(w[2]) : "r"(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(w[3]), "=r"(w[4]), "=r"(w[5]), "=r"(w[6])
               : "r"(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(w[7]) : "r"(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(w[8]), "=r"(w[9]) : "r"(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(w[10]), "=r"(w[11]), "=r"(w[12]), "=r"(w[13])
               : "r"(row));
  for (int i = 0; i < kMatrixWords; ++i) out[i] = w[i];
}

__global__ void copies_kernel(uint4* y, const uint4* x, const int* counts) {
  __shared__ uint4 tile[32];
  const int i = threadIdx.x;
  const u32 to = shared_address(tile + i);
  const auto* from = reinterpret_cast<const unsigned char*>(x + i);
  if (i < 16) {
    copy_16(to, from, counts[i]);
    commit();
  } else {
    copy_8(to, from, counts[i] < 8 ? counts[i] : 8);
    commit();
    copy_4(to + 8, from + 8);
    copy_4(to + 12, from + 12);
  }
  if (i < 16) {
    commit();  // an empty group is the newest
    wait_for_all_but_one();
  } else {
    wait_for_all();
  }
  __syncthreads();
  y[31 - i] = tile[31 - i];
}

template <MatrixMutant kMutant>
__global__ void mutant_tile_kernel(u32* y, const uint4* x, int threads) {
  __shared__ uint4 tile[64];
  const int i = threadIdx.x;
  const char* from = reinterpret_cast<const char*>(x + i);
  if (kMutant == MatrixMutant::kCopyMisaligned) from += 8;
  if (kMutant == MatrixMutant::kCopyBeyondTheEnd) from += 16;
  copy_16(shared_address(tile + i), from, kMutant == MatrixMutant::kCopyTooLong ? 20 : 16);
  if (kMutant == MatrixMutant::kStoreIntoACopy) tile[i] = uint4{};
  commit();
  if (kMutant == MatrixMutant::kNeverWaits) return;
  if (kMutant == MatrixMutant::kWaitsForTooFew) {
    wait_for_all_but_one();
  } else {
    wait();
  }
  if (kMutant != MatrixMutant::kBarrierMissing) __syncthreads();
  u32 row = shared_address(tile + (threads - 1 - i));
  if (kMutant == MatrixMutant::kRowMisaligned) row += 8;
  if (kMutant == MatrixMutant::kRowOutside) row += 16;
  u32 w[4] = {};
  if (kMutant != MatrixMutant::kLaneMissing || i % 32 != 5) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(row));
  }
  if (kMutant == MatrixMutant::kCopyOverWhatIsRead) {
    copy_16(shared_address(tile + i), from, 16);
    commit();
    wait();
  }
  y[i] = w[0] ^ w[1] ^ w[2] ^ w[3];
}

template <MatrixMutant kMutant>
void launch_mutant(u32* y, const u32* x, cudaStream_t stream) {
  const int threads = kMutant == MatrixMutant::kHalfAWarp ? 16 : 64;
  mutant_tile_kernel<kMutant><<<1, threads, 0, stream>>>(y, reinterpret_cast<const uint4*>(x), threads);
}

}  // namespace

void product_of_halves(float* y, const std::uint16_t* a, const std::uint16_t* b, const float* c, cudaStream_t stream) {
  product_kernel<false><<<1, 32, 0, stream>>>(y, a, b, c);
}
void product_of_brains(float* y, const std::uint16_t* a, const std::uint16_t* b, const float* c, cudaStream_t stream) {
  product_kernel<true><<<1, 32, 0, stream>>>(y, a, b, c);
}
void matrices(u32* y, const std::uint16_t* x, cudaStream_t stream) {
  matrices_kernel<<<1, 32, 0, stream>>>(y, reinterpret_cast<const uint4*>(x));
}
void copies(u32* y, const u32* x, const int* counts, cudaStream_t stream) {
  copies_kernel<<<1, 32, 0, stream>>>(reinterpret_cast<uint4*>(y), reinterpret_cast<const uint4*>(x), counts);
}

void run_mutant(MatrixMutant mutant, u32* y, const u32* x, cudaStream_t stream) {
  switch (mutant) {
#define MUTANT(NAME)       \
  case MatrixMutant::NAME: \
    return launch_mutant<MatrixMutant::NAME>(y, x, stream)
    MUTANT(kNone);
    MUTANT(kWaitsForTooFew);
    MUTANT(kNeverWaits);
    MUTANT(kBarrierMissing);
    MUTANT(kRowMisaligned);
    MUTANT(kRowOutside);
    MUTANT(kLaneMissing);
    MUTANT(kHalfAWarp);
    MUTANT(kCopyOverWhatIsRead);
    MUTANT(kCopyMisaligned);
    MUTANT(kCopyTooLong);
    MUTANT(kCopyBeyondTheEnd);
    MUTANT(kStoreIntoACopy);
#undef MUTANT
  }
}

}  // namespace tenon::ptx_test
