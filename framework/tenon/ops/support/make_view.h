// How an operator makes a view: the same storage under other sizes and strides, with its backward recorded.
#pragma once

#include <tenon/ops/support/support.h>

#include <utility>

namespace tenon::ops {

/// Tells autograd that `view` is one of `self`, and the next output of the recorded node, if there is one.
inline void record_view(const Tensor& self, const Tensor& view, const Recording& recording,
                        autograd::CreationMeta creation = autograd::CreationMeta::DEFAULT) {
  if (!autograd::modes.grad_enabled) {
    creation =
        autograd::modes.inference ? autograd::CreationMeta::INFERENCE_MODE : autograd::CreationMeta::NO_GRAD_MODE;
  }
  autograd::make_view(self, view, creation);
  if (!recording) return;
  const std::uint32_t number = recording.node()->add_input_metadata(view);
  autograd::set_gradient_edge(view, {recording.node(), number});
}

/// A view of `self` under other sizes, strides and offset, whose backward is `formula`.
template <class Formula>
Tensor make_view(const char* name, const Tensor& self, const Dims& sizes, const Dims& strides, std::int64_t offset,
                 Formula formula) {
  Tensor result = alias_of(self, sizes, strides, offset);
  record_view(self, result, record<0>(name, {&self}, std::move(formula)));
  return result;
}

}  // namespace tenon::ops
