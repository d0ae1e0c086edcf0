// What makes a pointwise row an operator: value, fused backward, and a differentiable backward, from one row.
#pragma once

#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/pointwise.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/symbolic.h>

namespace tenon::ops {

struct UnaryRule {
  OperatorId forward;
  OperatorId backward;
  const char* node_name;
  pointwise::Saves saves;
  bool integers;
  /// dy * slope(x, y), as operators on tensors.
  Tensor (*symbolic)(const Tensor& gradient, const Tensor& saved, const PointwiseAttributes& attributes);
};

template <class Row>
Tensor symbolic_slope(const Tensor& gradient, const Tensor& saved, const PointwiseAttributes& attributes) {
  Symbolic parameters[3] = {attributes.parameters[0].real, attributes.parameters[1].real,
                            attributes.parameters[2].real};
  const Symbolic slope = Row::template slope<Symbolic>(Symbolic(saved), Symbolic(saved), parameters);
  return (Symbolic(gradient) * slope).tensor;
}

/// "tanh" -> "TanhBackward0".
const char* backward_name(const char* op);

template <class Row>
const UnaryRule& rule_of() {
  static const UnaryRule rule{intern_operator(Row::name),
                              intern_operator(std::string(Row::name) + "_backward"),
                              backward_name(Row::name),
                              Row::kSaves,
                              Row::kIntegers,
                              &symbolic_slope<Row>};
  return rule;
}

Tensor unary(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes);
Tensor& unary_inplace(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes);

template <class Row>
Tensor unary(const Tensor& self, PointwiseAttributes attributes = {}) {
  return unary(rule_of<Row>(), self, attributes);
}
template <class Row>
Tensor& unary_inplace(const Tensor& self, PointwiseAttributes attributes = {}) {
  return unary_inplace(rule_of<Row>(), self, attributes);
}

}  // namespace tenon::ops
