// Vectors of the level's own width: of wider ones gcc keeps every step in memory.
#pragma once

#include "kernels/level.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

/// The bytes of a vector register.
#if defined(__AVX512F__)
inline constexpr i64 kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr i64 kVectorBytes = 32;
#else
inline constexpr i64 kVectorBytes = 16;
#endif

/// How many elements of T one takes.
template <class T>
inline constexpr i64 kVectorLanes = kVectorBytes / static_cast<i64>(sizeof(T));

/// The types of a vector of T: in a register, and in memory at the address of any T.
template <class T>
struct NativeVector {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  typedef T InMemory __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};

/// The elements from p on.
template <class T>
[[gnu::always_inline]] inline const typename NativeVector<T>::InMemory& vector_at(const T* p) {
  return *reinterpret_cast<const typename NativeVector<T>::InMemory*>(p);
}

/// Adds a vector's upper half to its lower one until a number of type T is left.
template <class T, class Vector>
[[gnu::always_inline]] inline T sum_of_halves(const Vector& v) {
  constexpr int kLanes = sizeof(Vector) / sizeof(T);
  if constexpr (kLanes == 16) {
    return sum_of_halves<T>(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                            __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
  } else if constexpr (kLanes == 8) {
    return sum_of_halves<T>(__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7));
  } else if constexpr (kLanes == 4) {
    return (v[0] + v[2]) + (v[1] + v[3]);
  } else {
    return v[0] + v[1];
  }
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
