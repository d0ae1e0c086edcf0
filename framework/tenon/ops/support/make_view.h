// How an operator makes a view: the same storage under other sizes and strides, with its backward recorded.
#pragma once

#include <tenon/ops/scope/operator_scope.h>
#include <tenon/ops/support/support.h>
#include <tenon/tensor/factory.h>

#include <cstddef>
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

/// The scope of a view: the operator's name, and how many operands it has, of which the first alone is a tensor.
struct ViewScope {
  const char* name;
  std::size_t operands;
};
/// For TENON_VIEW.
template <class... Operands>
[[gnu::always_inline]] inline ViewScope view_scope(const char* name, const Operands&... /*operands*/) {
  return {name, sizeof...(Operands)};
}

/// make_view() where somebody is told, apart: it is not to be in the way of the other.
template <class Formula>
[[gnu::cold, gnu::noinline]] Tensor make_told_view(ViewScope of, const char* name, const Tensor& self,
                                                   const Dims& sizes, const Dims& strides, std::int64_t offset,
                                                   Formula formula) {
  scopes::Scope scope;
  if (scopes::is_listening()) {
    const scopes::Operand operands[8] = {operand_of(self)};
    enter_operator(scope, of.name, {operands, of.operands});
  }
  return make_view(name, self, sizes, strides, offset, std::move(formula));
}

/// The same under a scope, TENON_VIEW. A view is so short that the questions of its scope and of its tensor would show:
/// this asks once for both.
template <class Formula>
[[gnu::always_inline]] inline Tensor make_view(ViewScope of, const char* name, const Tensor& self, const Dims& sizes,
                                               const Dims& strides, std::int64_t offset, Formula formula) {
  if (scopes::wanted() != 0) [[unlikely]]
    return make_told_view(of, name, self, sizes, strides, offset, std::move(formula));
  Tensor result = unlisted_alias_of(self, sizes, strides, offset);
  record_view(self, result, must_record({&self}) ? record<0>(name, {&self}, std::move(formula)) : Recording());
  return result;
}

}  // namespace tenon::ops

/// The scope of an operator that ends with make_view(): its name, then its operands, as in TENON_SCOPE.
#define TENON_VIEW(name, ...) ::tenon::ops::view_scope(#name, __VA_ARGS__)
