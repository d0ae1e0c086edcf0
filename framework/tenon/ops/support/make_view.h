// How an operator makes a view: the same storage under other sizes and strides, with its backward recorded.
#pragma once

#include <tenon/ops/scope/operator_scope.h>
#include <tenon/ops/support/support.h>
#include <tenon/tensor/factory.h>

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

/// The same under a scope, `enter` being TENON_VIEW. A view is so short that the questions of its scope and of its
/// tensor would show: this asks once for both.
template <class Enter, class Formula>
Tensor make_view(const Enter& enter, const char* name, const Tensor& self, const Dims& sizes, const Dims& strides,
                 std::int64_t offset, Formula formula) {
  if (scopes::wanted() != 0) [[unlikely]] {
    const OperatorScope scope = enter();
    return make_view(name, self, sizes, strides, offset, std::move(formula));
  }
  Tensor result = unlisted_alias_of(self, sizes, strides, offset);
  record_view(self, result, record<0>(name, {&self}, std::move(formula)));
  return result;
}

}  // namespace tenon::ops

/// The scope of an operator that ends with make_view(): its name, then its operands, as in TENON_SCOPE.
#define TENON_VIEW(name, ...) [&] { return ::tenon::ops::OperatorScope(#name __VA_OPT__(, ) __VA_ARGS__); }
