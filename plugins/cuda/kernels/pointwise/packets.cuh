// Packets: up to 16 bytes of an operand, read and written by one access, and taken apart into numbers. Which dtype the
// elements have is known at run time only, so that a row is compiled once for a compute type and not for each dtype:
// the branch is the same for every thread, and a row is a hundred instructions against a few hundred cycles of memory.
#pragma once

#include "kernels/dtypes.cuh"

namespace tenon::cuda {

template <class T>
inline constexpr Dtype kDtype = dtype_of<T>;
template <>
inline constexpr Dtype kDtype<F16> = Dtype::kFloat16;
template <>
inline constexpr Dtype kDtype<BF16> = Dtype::kBFloat16;

constexpr int smaller(int a, int b) { return b < a ? b : a; }
constexpr int larger(int a, int b) { return a < b ? b : a; }

/// Numbers of type C, which lie in memory as one of Elements.
template <class C, class... Elements>
struct Lane {
  using Value = C;
  static constexpr int kMostBytes = [] {
    int most = 0;
    ((most = larger(most, sizeof(Elements))), ...);
    return most;
  }();

#if defined(__CUDACC__)
  /// f(Type<T>{}) with the one of Elements that is `dtype`.
  template <class F>
  __device__ static void visit(Dtype dtype, const F& f) {
    if constexpr (sizeof...(Elements) == 1) {
      (f(Type<Elements>{}), ...);
    } else {
      (void)((dtype == kDtype<Elements> ? (f(Type<Elements>{}), true) : false) || ...);
    }
  }
#endif
};
using FloatLane = Lane<float, F16, BF16, float>;
using DoubleLane = Lane<double, double>;
using IntegerLane = Lane<i64, bool, u8, std::int8_t, std::int16_t, i32, i64>;
using BoolLane = Lane<bool, bool>;
/// Numbers that are stored as any dtype.
template <class C>
using AnyLane = Lane<C, bool, u8, std::int8_t, std::int16_t, i32, i64, F16, BF16, float, double>;
/// Elements that are moved and not looked at.
template <class Unsigned>
using BitsLane = Lane<Unsigned, Unsigned>;

#if defined(__CUDACC__)

class Packet {
 public:
  /// `bytes` is 1, 2, 4, 8 or 16, and `from` aligned to it.
  __device__ void read_if(bool wanted, const char* from, int bytes) {
    if (!wanted) return;
    if (bytes == 16) {
      const ulonglong2 both = *reinterpret_cast<const ulonglong2*>(from);
      low_ = both.x;
      high_ = both.y;
    } else if (bytes == 8) {
      low_ = *reinterpret_cast<const u64*>(from);
    } else if (bytes == 4) {
      low_ = *reinterpret_cast<const u32*>(from);
    } else if (bytes == 2) {
      low_ = *reinterpret_cast<const u16*>(from);
    } else {
      low_ = *reinterpret_cast<const u8*>(from);
    }
  }

  /// What was put last lies highest.
  __device__ void write(char* to, int bytes) const {
    if (bytes == 16) {
      *reinterpret_cast<ulonglong2*>(to) = {low_, high_};
    } else if (bytes == 8) {
      *reinterpret_cast<u64*>(to) = high_;
    } else if (bytes == 4) {
      *reinterpret_cast<u32*>(to) = static_cast<u32>(high_ >> 32);
    } else {
      *reinterpret_cast<u16*>(to) = static_cast<u16>(high_ >> 48);
    }
  }

  /// Element i, counted from what was not dropped.
  template <class T>
  __device__ T at(int i) const {
    const int bits = i * 8 * static_cast<int>(sizeof(T));
    return from_bits<T>(bits < 64 ? low_ >> bits : high_ >> (bits - 64));
  }

  /// Drops the first kBytes.
  template <int kBytes>
  __device__ void drop() {
    if constexpr (kBytes == 16) {
      low_ = high_ = 0;
    } else if constexpr (kBytes == 8) {
      low_ = high_;
      high_ = 0;
    } else {
      low_ = low_ >> (8 * kBytes) | high_ << (64 - 8 * kBytes);
      high_ >>= 8 * kBytes;
    }
  }

  /// Drops as much, and puts `elements` at the end.
  template <class T, int kCount>
  __device__ void put(const T (&elements)[kCount]) {
    constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
    drop<kBytes>();
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int bits = 8 * (16 - kBytes + i * static_cast<int>(sizeof(T)));
      if (bits < 64) {
        low_ |= to_bits(elements[i]) << bits;
      } else {
        high_ |= to_bits(elements[i]) << (bits - 64);
      }
    }
  }

 private:
  template <class T>
  __device__ static T from_bits(u64 bits) {
    if constexpr (std::is_same_v<T, double>) {
      return __longlong_as_double(static_cast<long long>(bits));
    } else if constexpr (std::is_same_v<T, float>) {
      return __uint_as_float(static_cast<u32>(bits));
    } else if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, BF16>) {
      return {static_cast<u16>(bits)};
    } else if constexpr (std::is_same_v<T, bool>) {
      return (bits & 0xff) != 0;
    } else {
      return static_cast<T>(bits);
    }
  }
  template <class T>
  __device__ static u64 to_bits(T value) {
    if constexpr (std::is_same_v<T, double>) {
      return static_cast<u64>(__double_as_longlong(value));
    } else if constexpr (std::is_same_v<T, float>) {
      return __float_as_uint(value);
    } else if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, BF16>) {
      return value.bits;
    } else {
      return static_cast<std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, u8, T>>>(value);
    }
  }

  u64 low_ = 0, high_ = 0;
};

#endif  // __CUDACC__

}  // namespace tenon::cuda
