// How an operator makes a view: the same storage under other sizes and strides, with its backward recorded.
#pragma once

#include <tenon/ops/support/support.h>

#include <utility>

namespace tenon::ops {

/// A view of `self` under other sizes, strides and offset, whose backward is `formula`.
template <class Formula>
Tensor make_view(const char* name, const Tensor& self, const Dims& sizes, const Dims& strides, std::int64_t offset,
                 Formula formula, autograd::CreationMeta creation = autograd::CreationMeta::DEFAULT) {
  Tensor result = alias_of(self, sizes, strides, offset);
  const Recording recording = record<0>(name, {&self}, std::move(formula));
  if (!autograd::modes.grad_enabled) {
    creation =
        autograd::modes.inference ? autograd::CreationMeta::INFERENCE_MODE : autograd::CreationMeta::NO_GRAD_MODE;
  }
  autograd::make_view(self, result, creation);
  if (recording) {
    const std::uint32_t number = recording.node()->add_input_metadata(result);
    autograd::set_gradient_edge(result, {recording.node(), number});
  }
  return result;
}

}  // namespace tenon::ops
