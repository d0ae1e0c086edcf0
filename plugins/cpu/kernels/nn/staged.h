// Operands of kernels that compute in one floating type on contiguous memory.
#pragma once

#include <initializer_list>

#include "kernels/pointwise/lanes.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

/// An operand of the normalisations as contiguous elements of T: its own memory where it is that, else a copy in
/// scratch, which an output writes back. Without an operand (rank < 0) `data` is null.
template <class T>
struct Staged {
  T* data = nullptr;
  bool staged = false;

  Staged(KernelContext& context, const TensorView& view, bool input) {
    if (view.rank < 0) return;
    data = static_cast<T*>(view.data);
    if (view.dtype == kDtypeOf<T> && contiguous(view)) return;
    staged = true;
    const i64 n = numel(view);
    data = static_cast<T*>(context.scratch(static_cast<std::size_t>(n) * sizeof(T)));
    if (input && n > 0) copy_view(plain(view, data), view);
  }
  /// Of an output: what was computed goes to where it belongs.
  void finish(const TensorView& view) const {
    if (staged && numel(view) > 0) copy_view(view, plain(view, data));
  }

 private:
  // Strides of a contiguous tensor of the view's sizes, kept beside it.
  TensorView plain(const TensorView& view, T* to) const {
    TensorView result = view;
    i64 expected = 1;
    for (int d = view.rank - 1; d >= 0; --d) {
      strides_[d] = expected;
      expected *= view.sizes[d];
    }
    result.data = to;
    result.strides = strides_;
    result.dtype = kDtypeOf<T>;
    return result;
  }
  mutable i64 strides_[kMaxRank];
};

/// Calls use(T{}) for the type that tensors of these dtypes are read and written in where they lie: their own where
/// they are all of one kind of 16 bits, else what the first is computed in.
template <class F>
void with_elements_of(std::initializer_list<const TensorView*> tensors, const F& use) {
  const Dtype first = (*tensors.begin())->dtype;
  bool alike = true;
  for (const TensorView* tensor : tensors) alike = alike && (tensor->rank < 0 || tensor->dtype == first);
  if (alike && first == Dtype::kBFloat16) return use(BF16{});
  if (alike && first == Dtype::kFloat16) return use(F16{});
  if (first == Dtype::kFloat64) return use(double{});
  return use(float{});
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
