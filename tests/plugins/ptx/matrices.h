// Kernels for the interpreter's tests that need compute capability 8.0: matrices and asynchronous copies.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tenon::ptx_test {

/// y = a b + c by one warp: a of 16 x 16 and c and y of 16 x 8 by rows, b of 16 x 8 by columns.
void product_of_halves(float* y, const std::uint16_t* a, const std::uint16_t* b, const float* c, cudaStream_t stream);
void product_of_brains(float* y, const std::uint16_t* a, const std::uint16_t* b, const float* c, cudaStream_t stream);

/// The words that each of 32 lanes gets of 1, 2 and 4 matrices, of which `x` has the rows: 7 of them as they lie, then
/// 7 transposed.
void matrices(std::uint32_t* y, const std::uint16_t* x, cudaStream_t stream);
inline constexpr int kMatrixWords = 14;

/// Of each 16 bytes of x, as many as `counts` says, then 0. 32 threads copy, the first half of them in a group of its
/// own; sizes of 16, 8 and 4 bytes.
void copies(std::uint32_t* y, const std::uint32_t* x, const int* counts, cudaStream_t stream);

/// A tile that 64 threads copy and two warps read, with one fault each.
enum class MatrixMutant {
  kNone,
  kWaitsForTooFew,
  kNeverWaits,
  kBarrierMissing,
  kRowMisaligned,
  kRowOutside,
  kLaneMissing,
  kHalfAWarp,
  kCopyOverWhatIsRead,
  kCopyMisaligned,
  kCopyTooLong,
  kCopyBeyondTheEnd,
  kStoreIntoACopy
};
void run_mutant(MatrixMutant mutant, std::uint32_t* y, const std::uint32_t* x, cudaStream_t stream);

}  // namespace tenon::ptx_test
