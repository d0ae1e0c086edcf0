// Kernels for the interpreter's tests: each function launches one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tenon::ptx_test {

void axpy(float* y, const float* x, float a, long n, cudaStream_t stream);  // 16 bytes at a time; n % 4 == 0
void block_sums(float* sums, const float* x, long n, int blocks, cudaStream_t stream);  // shuffles, shared memory
void grid_sum(float* sum, float* parts, unsigned* arrived, const float* x, long n, int blocks, cudaStream_t stream);
void softmax(float* y, const float* x, int rows, int columns, cudaStream_t stream);  // dynamic shared memory
void functions(float* y, const float* x, int n, cudaStream_t stream);                // kFunctions results for each x
void functions(double* y, const double* x, int n, cudaStream_t stream);
inline constexpr int kFunctions = 24;
void halves(std::uint16_t* half, std::uint16_t* brain, const float* x, int n, cudaStream_t stream);
void wholes(std::int64_t* y, const std::int32_t* a, const std::int32_t* b, int n, cudaStream_t stream);
inline constexpr int kWholes = 12;
void histogram(unsigned* counts, const unsigned char* x, int n, cudaStream_t stream);  // atomics in shared memory
void votes(unsigned* y, const int* x, cudaStream_t stream);                            // of one warp
void block_votes(int* y, const int* x, cudaStream_t stream);                           // of 96 threads
inline constexpr int kBlockVotes = 5;
void halves_of_words(std::uint16_t* y, cudaStream_t stream);     // shared memory written in words, of 32 threads
void where(int* y, dim3 grid, dim3 block, cudaStream_t stream);  // indices in three dimensions

/// Kernels with one fault each.
enum class Mutant {
  kBarrierMissing,
  kWarpBarrierMissing,
  kSharedUnwritten,
  kSharedOverrun,
  kGlobalOverrun,
  kMisaligned,
  kBlocksRace,
  kThreadsRace,
  kFenceMissing,
  kBarrierDivergent,
  kBarrierLeftOut,
  kMaskNamesEnded,
  kLaneOutsideMask,
  kOwnLaneMissing,
  kTrap,
  kFirstOfManyReaders,
  kReaderInAnotherBlock,
  kSizesDiffer,
  kHalfOfAPacket,
  kConstantWritten,
  kEndless
};
void run_mutant(Mutant mutant, float* y, unsigned* counter, cudaStream_t stream);

cudaError_t launch_empty(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream);

}  // namespace tenon::ptx_test
