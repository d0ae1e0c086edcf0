// The base of every file that is compiled for several levels: the namespace, integer names, parallel ranges.
// See Note [One definition per level] in kernels.h.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/kernel/kernel.h>
#include <tenon/kernel/tensor_view.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/kernels.h"

#if !defined(TENON_CPU_LEVEL)
#define TENON_CPU_LEVEL sse2
#endif

namespace tenon::cpu::TENON_CPU_LEVEL {

using i64 = std::int64_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using u32 = std::uint32_t;
using u16 = std::uint16_t;
using u8 = std::uint8_t;
using Views = std::span<const TensorView>;

/// What sums and products of T are made in: integers wrap.
template <class T>
using Wrapping = std::conditional_t<std::is_same_v<T, i64>, u64, T>;

template <class T>
constexpr T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T larger(T a, T b) {
  return a < b ? b : a;
}

/// Reads one view of a span without std::span's inline functions.
inline const TensorView& at(const Views& views, int index) { return *(&*views.data() + index); }

inline i64 numel(const TensorView& view) {
  i64 count = 1;
  for (int i = 0; i < view.rank; ++i) count *= view.sizes[i];
  return count;
}

inline bool contiguous(const TensorView& view) {
  i64 expected = 1;
  for (int i = view.rank - 1; i >= 0; --i) {
    if (view.sizes[i] == 1) continue;
    if (view.sizes[i] == 0) return true;
    if (view.strides[i] != expected) return false;
    expected *= view.sizes[i];
  }
  return true;
}

inline i64 bytes_of(Dtype dtype) {
  constexpr i64 kSizes[kDtypeCount] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kSizes[static_cast<int>(dtype)];
}

/// parallel_ranges for a callable: body(begin, end).
template <class Body>
inline void parallel(i64 total, i64 grain, i64 multiple, const Body& body) {
  if (total <= 0) return;
  if (total < 2 * grain) return body(i64{0}, total);
  parallel_ranges(
      total, grain, multiple, [](void* state, i64 begin, i64 end) { (*static_cast<const Body*>(state))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
