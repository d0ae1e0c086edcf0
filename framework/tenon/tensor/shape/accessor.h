// TensorAccessor: element access by index without a bounds check, for loops of the caller's over a tensor in host
// memory.
//
//   auto a = tensor.accessor<float, 2>();
//   for (std::int64_t i = 0; i < a.size(0); ++i) a[i][i] = 1;
//
// An accessor points into the tensor and must not outlive it. A packed accessor carries its sizes and strides by value.
#pragma once

#include <tenon/tensor/shape/array_ref.h>

#include <cstddef>
#include <cstdint>

namespace tenon {

/// c10's hint that no other pointer reaches the same memory: no promise that Tenon's accessors need.
template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
using RestrictPtrTraits = DefaultPtrTraits<T>;

/// N dims of `T` from `data`; sizes and strides (in elements) are the tensor's own.
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits, class Index = std::int64_t>
class TensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}

  /// The sizes of all N dims.
  ArrayRef<Index> sizes() const { return {sizes_, N}; }
  /// The strides of all N dims, in elements.
  ArrayRef<Index> strides() const { return {strides_, N}; }
  /// The size of a dim; not checked.
  Index size(Index dim) const { return sizes_[dim]; }
  /// The stride of a dim, in elements; not checked.
  Index stride(Index dim) const { return strides_[dim]; }
  /// The address of the first element.
  PtrType data() const { return data_; }

  decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) {
      return static_cast<T&>(data_[strides_[0] * i]);
    } else {
      return TensorAccessor<T, N - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
    }
  }

 private:
  PtrType data_;
  const Index* sizes_;
  const Index* strides_;
};

/// The same with sizes and strides of its own, in `Index`.
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits, class Index = std::int64_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  template <class Source>
  GenericPackedTensorAccessor(PtrType data, const Source* sizes, const Source* strides) : data_(data) {
    for (std::size_t i = 0; i < N; ++i) {
      sizes_[i] = static_cast<Index>(sizes[i]);
      strides_[i] = static_cast<Index>(strides[i]);
    }
  }

  /// The size of a dim; not checked.
  Index size(Index dim) const { return sizes_[dim]; }
  /// The stride of a dim, in elements; not checked.
  Index stride(Index dim) const { return strides_[dim]; }
  /// The address of the first element.
  PtrType data() const { return data_; }

  decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) {
      return static_cast<T&>(data_[strides_[0] * i]);
    } else {
      return TensorAccessor<T, N - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
    }
  }

 private:
  PtrType data_;
  Index sizes_[N];
  Index strides_[N];
};

template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, std::int32_t>;
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, std::int64_t>;

}  // namespace tenon
