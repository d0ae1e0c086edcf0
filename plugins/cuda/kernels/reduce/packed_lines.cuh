// Lines that lie dense in memory, read and written 16 bytes at a time: eight elements of float16 and bfloat16, four of
// float32, two of float64. What lies before the first multiple of 16 bytes and behind the last one, and lines that lie
// otherwise, go element by element.
//
//   along<T>(team, line, length, is_packed, [&](i64 i, auto count) { Compute<T> x[count]; read(line + i, x); … });
#pragma once

#include "kernels/reduce/team.cuh"

#include <cstdint>
#include <type_traits>

namespace tenon::cuda {

template <class T>
inline constexpr int kPacketOf = 16 / static_cast<int>(sizeof(T));  ///< elements in 16 bytes

#if defined(__CUDACC__)

/// Whether packets of one line are packets of the other, too.
__device__ inline bool lie_alike(const void* a, const void* b) {
  return ((reinterpret_cast<std::uintptr_t>(a) ^ reinterpret_cast<std::uintptr_t>(b)) & 15) == 0;
}

/// step(i, count) for the elements of a line that are this lane's: `count` of them from i on, kPacketOf<T> or one.
/// `line` is where they begin; packed: dense, and all else that step() touches lies alike.
template <class T, class Step>
__device__ void along(const Team& team, const T* line, i64 length, bool packed, const Step& step) {
  constexpr int kCount = kPacketOf<T>;
  i64 head = 0, packets = 0;
  if (packed) {
    const auto beyond = static_cast<int>(reinterpret_cast<std::uintptr_t>(line) & 15);
    head = min(length, static_cast<i64>((16 - beyond) & 15) / static_cast<i64>(sizeof(T)));
    packets = (length - head) / kCount;
  }
  for (i64 i = team.lane; i < packets; i += team.lanes) step(head + i * kCount, std::integral_constant<int, kCount>{});
  for (i64 i = team.lane; i < length - packets * kCount; i += team.lanes)
    step(i < head ? i : i + packets * kCount, std::integral_constant<int, 1>{});
}

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Packed {
  T elements[kCount];
};

/// `kCount` elements as numbers, by one access.
template <class T, int kCount>
__device__ void read(const T* from, Compute<T> (&to)[kCount]) {
  const auto packed = *reinterpret_cast<const Packed<T, kCount>*>(from);
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = load_as<T>(packed.elements[i]);
}
template <class T, int kCount>
__device__ void write(T* to, const Compute<T> (&from)[kCount]) {
  Packed<T, kCount> packed;
#pragma unroll
  for (int i = 0; i < kCount; ++i) packed.elements[i] = store_as<T>(from[i]);
  *reinterpret_cast<Packed<T, kCount>*>(to) = packed;
}

#endif  // __CUDACC__

}  // namespace tenon::cuda
