// Strided operands: which elements belong to a position. The host drops and joins dimensions (make_nest), the device
// then divides its position by the sizes that are left, in 32 bits where all positions fit.
//
//   __global__ void add_kernel(Nest<3> nest, …) {
//     for (i64 i = first_item(); i < nest.total; i += all_items()) {
//       i64 at[3];
//       nest.locate(i, at);
//       *element<float>(nest.data[0], at[0]) = …
//
// A nest goes to the kernel by value: 16 dimensions of four operands are less than the 4 KiB of parameters.
#pragma once

#include "kernels/dtypes.cuh"

namespace tenon::cuda {

/// Unsigned division by a number that the host knows: by a multiplication and a shift where the dividend is below 2^31.
class Divider {
 public:
  Divider() = default;
  explicit Divider(u64 divisor) : divisor_(divisor) {
    if (divisor > 0x7fffffffu) return;
    while ((u64{1} << shift_) < divisor) ++shift_;
    factor_ = static_cast<u32>(((u64{1} << 32) * ((u64{1} << shift_) - divisor)) / divisor + 1);
  }

#if defined(__CUDACC__)
  /// Both below 2^31.
  __device__ u32 quotient32(u32 n) const { return (__umulhi(n, factor_) + n) >> shift_; }
  __device__ u64 quotient64(u64 n) const { return n / divisor_; }
#endif
  u64 divisor() const { return divisor_; }

 private:
  u64 divisor_ = 1;
  u32 factor_ = 1;
  u32 shift_ = 0;

  template <int>
  friend struct Nest;
};

/// The dimensions of kOperands operands walked together, innermost first. Strides are in bytes.
template <int kOperands>
struct Nest {
  i64 total = 0;      ///< positions
  int rank = 0;       ///< at least 1
  bool wide = false;  ///< positions need 64 bits
  char* data[kOperands];
  i64 strides[kOperands][kMaxRank];
  Divider sizes[kMaxRank];

#if defined(__CUDACC__)
  /// The byte offsets of position i (0 <= i < total) in each operand.
  __device__ void locate(i64 i, i64 (&at)[kOperands]) const {
    for (int k = 0; k < kOperands; ++k) at[k] = 0;
    if (!wide) {
      u32 rest = static_cast<u32>(i);
      for (int d = 0; d < rank - 1; ++d) {
        const u32 next = sizes[d].quotient32(rest);
        const u32 coordinate = rest - next * static_cast<u32>(sizes[d].divisor_);
        for (int k = 0; k < kOperands; ++k) at[k] += coordinate * strides[k][d];
        rest = next;
      }
      for (int k = 0; k < kOperands; ++k) at[k] += rest * strides[k][rank - 1];
    } else {
      u64 rest = static_cast<u64>(i);
      for (int d = 0; d < rank - 1; ++d) {
        const u64 next = sizes[d].quotient64(rest);
        const u64 coordinate = rest - next * sizes[d].divisor_;
        for (int k = 0; k < kOperands; ++k) at[k] += static_cast<i64>(coordinate) * strides[k][d];
        rest = next;
      }
      for (int k = 0; k < kOperands; ++k) at[k] += static_cast<i64>(rest) * strides[k][rank - 1];
    }
  }
#endif

  /// Every operand has elements of these sizes one after another: position i is at i * size.
  bool contiguous(const int (&element_bytes)[kOperands]) const {
    if (rank != 1) return false;
    for (int k = 0; k < kOperands; ++k) {
      if (sizes[0].divisor() > 1 && strides[k][0] != element_bytes[k]) return false;
    }
    return true;
  }
};

/// kReordered: dimensions in the order of the first operand's strides, so that it is written in the order of its
/// memory. kRowMajor: position i is element i of the first operand.
enum class NestOrder { kReordered, kRowMajor };

/// What make_nest computes, whatever the number of operands.
struct NestParts {
  i64* total;
  int* rank;
  bool* wide;
  char** data;
  i64 (*strides)[kMaxRank];
  Divider* sizes;
};
void fill_nest(const NestParts& nest, const TensorView* const* views, int operands, NestOrder order);

/// Every view has the sizes of the first or broadcasts to them (size 1, or fewer dimensions).
template <int kOperands>
Nest<kOperands> make_nest(const TensorView* const (&views)[kOperands], NestOrder order = NestOrder::kReordered) {
  Nest<kOperands> nest;
  fill_nest({&nest.total, &nest.rank, &nest.wide, nest.data, nest.strides, nest.sizes}, views, kOperands, order);
  return nest;
}

#if defined(__CUDACC__)

/// The first position of this thread, and how far it is to its next.
__device__ inline i64 first_item() { return static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline i64 all_items() { return static_cast<i64>(gridDim.x) * blockDim.x; }

template <class T>
__device__ inline T* element(char* data, i64 bytes) {
  return reinterpret_cast<T*>(data + bytes);
}

#endif

}  // namespace tenon::cuda
