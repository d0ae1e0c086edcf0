// The scope of an operator: one line at its head says its name and its operands.
//
//   Tensor outer(const Tensor& self, const Tensor& other) {
//     TENON_SCOPE(outer, self, other)
//
// TENON_AUTOCAST (ops/autocast/autocast_call.h) contains it. What merely calls an operator of the same name has none.
#pragma once

#include <tenon/core/scope/scope.h>
#include <tenon/tensor/tensor.h>

#include <concepts>
#include <optional>
#include <span>

namespace tenon::ops {

inline scopes::Operand operand_of(const Tensor& tensor) {
  return {.type = scopes::Operand::Type::kTensor, .data = &tensor};
}
inline scopes::Operand operand_of(const std::optional<Tensor>& tensor) {
  return tensor ? operand_of(*tensor) : scopes::Operand{};
}
template <class T>
scopes::Operand operand_of(const T& value) {
  if constexpr (std::convertible_to<const T&, TensorList>) {
    const TensorList list(value);
    return {
        .type = scopes::Operand::Type::kTensors, .count = static_cast<std::uint32_t>(list.size()), .data = list.data()};
  } else {
    return {};
  }
}

/// Enters the scope of an operator.
void enter_operator(scopes::Scope& scope, const char* name, std::span<const scopes::Operand> operands) noexcept;

/// An operator under way.
class OperatorScope {
 public:
  template <class... Operands>
  [[gnu::always_inline]] explicit OperatorScope(const char* name, const Operands&... operands) noexcept {
    if (scopes::is_listening()) [[unlikely]] {
      const scopes::Operand list[] = {operand_of(operands)..., {}};
      enter_operator(scope_, name, {list, sizeof...(operands)});
    }
  }

 private:
  scopes::Scope scope_;
};

}  // namespace tenon::ops

/// At the head of an operator: its name, then its operands, *this first in a method.
#define TENON_SCOPE(name, ...) const ::tenon::ops::OperatorScope tenon_operator_scope(#name __VA_OPT__(, ) __VA_ARGS__);
