// What the kernels of integers of 8 bits share: how a number becomes one, and products of four of them at once.
#pragma once

#include "kernels/dtypes.cuh"

#include <cstddef>
#include <cstdint>

namespace tenon::cuda {

using i8 = std::int8_t;

inline bool is_aligned(const void* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

/// f(Type<Q>{}) with the type of the integers.
template <class F>
void bytes_only(const char* kernel, Dtype dtype, const F& f) {
  if (dtype == Dtype::kUInt8) return f(Type<u8>{});
  if (dtype == Dtype::kInt8) return f(Type<i8>{});
  refuse_dtype(kernel, dtype);
}

#if defined(__CUDACC__)

/// x / scale to the nearest integer, halves to the even one, + zero, held within Q; nan becomes the lowest.
template <class Q>
class Rounding {
 public:
  __device__ Rounding(float scale, i32 zero)
      : inverse_(1.0f / scale),
        zero_(zero),
        low_(static_cast<float>((std::is_signed_v<Q> ? -128 : 0) - zero)),
        high_(static_cast<float>((std::is_signed_v<Q> ? 127 : 255) - zero)) {}
  __device__ Q operator()(float x) const {
    return static_cast<Q>(__float2int_rn(fminf(fmaxf(x * inverse_, low_), high_)) + zero_);
  }

 private:
  float inverse_;
  i32 zero_;
  float low_, high_;
};

/// c + the sum of the products of four bytes of A, in a word, and four of B.
template <class A, class B>
__device__ i32 add_products(u32 a, u32 b, i32 c) {
  i32 sum;
  if constexpr (std::is_signed_v<A> && std::is_signed_v<B>) {
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  } else if constexpr (std::is_signed_v<B>) {
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  } else {
    static_assert(std::is_signed_v<A>);
    asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  }
  return sum;
}

#endif  // __CUDACC__

}  // namespace tenon::cuda
