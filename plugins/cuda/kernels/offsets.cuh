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
  constexpr u64 divisor() const { return divisor_; }

 private:
  u64 divisor_ = 1;
  u32 factor_ = 1;
  u32 shift_ = 0;

  template <int>
  friend struct Nest;
};

/// What the host computes of a nest, whatever the number of operands.
struct NestParts {
  i64* total;
  int* rank;
  bool* wide;
  char** data;
  i64 (*strides)[kMaxRank];
  Divider* sizes;
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
    if (!wide) {
      const u32 positions[1] = {static_cast<u32>(i)};
      i64 offsets[1][kOperands];
      locate_near(positions, offsets);
      for (int k = 0; k < kOperands; ++k) at[k] = offsets[0][k];
      return;
    }
    for (int k = 0; k < kOperands; ++k) at[k] = 0;
    u64 rest = static_cast<u64>(i);
#pragma unroll 1
    for (int d = 0; d < rank; ++d) {
      const u64 next = d == rank - 1 ? 0 : sizes[d].quotient64(rest);
      const u64 coordinate = rest - next * sizes[d].divisor_;
      for (int k = 0; k < kOperands; ++k) at[k] += static_cast<i64>(coordinate) * strides[k][d];
      rest = next;
    }
  }

  /// The same for several positions at once and the first kUsed operands, where the nest is not wide.
  template <int kCount, int kUsed>
  __device__ void locate_near(const u32 (&positions)[kCount], i64 (&at)[kCount][kUsed]) const {
    u32 rest[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      rest[i] = positions[i];
#pragma unroll
      for (int k = 0; k < kUsed; ++k) at[i][k] = 0;
    }
#pragma unroll 1
    for (int d = 0; d < rank - 1; ++d) {
      const Divider size = sizes[d];
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const u32 next = size.quotient32(rest[i]);
        const i64 coordinate = rest[i] - next * static_cast<u32>(size.divisor_);
#pragma unroll
        for (int k = 0; k < kUsed; ++k) at[i][k] += coordinate * strides[k][d];
        rest[i] = next;
      }
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int k = 0; k < kUsed; ++k) at[i][k] += rest[i] * strides[k][rank - 1];
    }
  }
#endif

  /// Takes dimension d away, as for a kernel that walks it by itself.
  void drop(int d) {
    total /= static_cast<i64>(sizes[d].divisor());
    for (int after = d + 1; after < rank; ++after) {
      sizes[after - 1] = sizes[after];
      for (int k = 0; k < kOperands; ++k) strides[k][after - 1] = strides[k][after];
    }
    if (--rank > 0) return;
    rank = 1;  // one position
    sizes[0] = Divider(1);
    for (int k = 0; k < kOperands; ++k) strides[k][0] = 0;
  }

  NestParts parts() { return {&total, &rank, &wide, data, strides, sizes}; }
};

/// kReordered: dimensions in the order of the first operand's strides, so that it is written in the order of its
/// memory. kRowMajor: position i is element i of the first operand.
enum class NestOrder { kReordered, kRowMajor };

void fill_nest(const NestParts& nest, const TensorView* const* views, int operands, NestOrder order);

/// Every view has the sizes of the first or broadcasts to them (size 1, or fewer dimensions).
template <int kOperands>
Nest<kOperands> make_nest(const TensorView* const (&views)[kOperands], NestOrder order = NestOrder::kReordered) {
  Nest<kOperands> nest;
  fill_nest(nest.parts(), views, kOperands, order);
  return nest;
}

/// f(part) for parts of the nest that are not wide and together make it.
template <int kOperands, class F>
void in_near_parts(const Nest<kOperands>& nest, const F& f) {
  constexpr i64 kMost = 0x7fffffff;
  if (nest.total <= kMost) return f(nest);
  const int outer = nest.rank - 1;
  const auto size = static_cast<i64>(nest.sizes[outer].divisor());
  const i64 inner = nest.total / size;
  const i64 most = inner < kMost ? kMost / inner : 1;
  for (i64 begin = 0; begin < size; begin += most) {
    Nest<kOperands> part = nest;
    const i64 count = begin + most < size ? most : size - begin;
    part.sizes[outer] = Divider(static_cast<u64>(count));
    part.total = inner * count;
    part.wide = part.total > kMost;
    for (int k = 0; k < kOperands; ++k) part.data[k] += begin * nest.strides[k][outer];
    if (count == 1 && outer > 0) --part.rank;
    in_near_parts(part, f);
  }
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
