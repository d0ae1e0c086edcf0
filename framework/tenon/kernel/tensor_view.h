// TensorView: a tensor as a kernel sees it. Plain data, valid for the duration of the call.
#pragma once

#include <tenon/core/dtype.h>

#include <cstdint>

namespace tenon {

/// Most dimensions that a tensor may have.
inline constexpr int kMaxRank = 16;

struct TensorView {
  void* data = nullptr;                   ///< first element (the storage offset is applied)
  const std::int64_t* sizes = nullptr;    ///< rank elements
  const std::int64_t* strides = nullptr;  ///< rank elements, in elements; 0 = broadcast
  std::int32_t rank = 0;
  Dtype dtype = Dtype::kFloat32;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  bool defined() const { return rank >= 0; }
  std::int64_t element_count() const {
    std::int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= sizes[i];
    return count;
  }
  bool is_contiguous() const {
    std::int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (sizes[i] == 1) continue;
      if (sizes[i] == 0) return true;
      if (strides[i] != expected) return false;
      expected *= sizes[i];
    }
    return true;
  }
};

}  // namespace tenon
