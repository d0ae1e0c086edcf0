// What makes a unary row an operator: value, fused backward, and a differentiable backward, from one row.
#pragma once

#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/closed.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/symbolic.h>
#include <tenon/ops/support/kernel_call.h>
#include <tenon/ops/support/recording.h>
#include <tenon/ops/support/scalar_operand.h>

#include <string>

namespace tenon::ops {

struct UnaryRule {
  const char* text;
  OperatorId forward;
  OperatorId backward;
  const char* node_name;
  pointwise::Saves reads;         ///< what the slope reads
  pointwise::Saves saves;         ///< what is saved for it: the operand may be, where it reads the result
  pointwise::Integers integers;   ///< what becomes of an integer operand
  pointwise::Integers bools;      ///< what becomes of a bool one
  bool is_contiguous;             ///< the result is, whatever the layout of the operand
  const autocast::Row* autocast;  ///< null where autocast lets it be
  /// Throws Error where PyTorch refuses an operand that the row could compute.
  void (*check)(const Tensor& self, const PointwiseAttributes& attributes);
  /// dy * slope(x, y), as operators on tensors.
  Tensor (*symbolic)(const Tensor& gradient, const Tensor& saved, const PointwiseAttributes& attributes);
};

/// What a row does with bools: what it does with integers where it converts those, else it refuses them.
template <class Row>
inline constexpr pointwise::Integers kBools =
    Row::kIntegers == pointwise::Integers::kConverted ? pointwise::Integers::kConverted : pointwise::Integers::kRefused;
template <>
inline constexpr pointwise::Integers kBools<pointwise::Square> = pointwise::Integers::kSigned;
template <>
inline constexpr pointwise::Integers kBools<pointwise::Sign> = pointwise::Integers::kKept;  // true is its own sign

/// Whether results of a row are contiguous whatever the layout of the operand: PyTorch's are.
template <class Row>
inline constexpr bool kContiguous = false;
template <>
inline constexpr bool kContiguous<pointwise::LogSigmoid> = true;

/// What is saved: what the slope reads, but where PyTorch's formula reads the operand, so that the same may be written
/// to between an operator and its backward. The result is computed again then.
template <class Row>
inline constexpr pointwise::Saves kSaved = Row::kSaves;
template <>
inline constexpr pointwise::Saves kSaved<pointwise::Erfinv> = pointwise::Saves::kInput;

/// What a row refuses beyond that; unary.cpp has the rows that do.
template <class Row>
void check_operand(const Tensor&, const PointwiseAttributes&) {}
template <>
void check_operand<pointwise::Neg>(const Tensor& self, const PointwiseAttributes&);
template <>
void check_operand<pointwise::Relu>(const Tensor& self, const PointwiseAttributes&);
template <>
void check_operand<pointwise::Relu6>(const Tensor& self, const PointwiseAttributes&);
template <>
void check_operand<pointwise::Hardtanh>(const Tensor& self, const PointwiseAttributes&);
template <>
void check_operand<pointwise::Celu>(const Tensor&, const PointwiseAttributes& alpha);
template <>
void check_operand<pointwise::Softshrink>(const Tensor&, const PointwiseAttributes& lambda);

/// The slope of a row as a tensor that is itself differentiable.
template <class Row>
Tensor symbolic_slope(const Tensor& gradient, const Tensor& saved, const PointwiseAttributes& attributes) {
  Symbolic parameters[3] = {attributes.parameters[0].real, attributes.parameters[1].real,
                            attributes.parameters[2].real};
  const Symbolic result = pointwise::slope_times<Row>(Symbolic(gradient), Symbolic(saved), parameters);
  return result.is_number() ? zeros_like(gradient) : result.tensor;  // a row that is closed everywhere
}
/// By a series near 0, where the row's formula is a difference of nearly equal numbers.
template <>
Tensor symbolic_slope<pointwise::Sinc>(const Tensor& gradient, const Tensor& saved, const PointwiseAttributes&);

/// "tanh" -> "TanhBackward0".
const char* backward_name(const char* op);

/// The rule of a row.
template <class Row>
const UnaryRule& rule_of() {
  static const UnaryRule rule{.text = Row::name,
                              .forward = intern_operator(Row::name),
                              .backward = intern_operator(std::string(Row::name) + "_backward"),
                              .node_name = backward_name(Row::name),
                              .reads = Row::kSaves,
                              .saves = kSaved<Row>,
                              .integers = Row::kIntegers,
                              .bools = kBools<Row>,
                              .is_contiguous = kContiguous<Row>,
                              .autocast = autocast::find_row(Row::name),
                              .check = &check_operand<Row>,
                              .symbolic = &symbolic_slope<Row>};
  return rule;
}

/// The rule of a row whose slope reads the result, where the operand is saved in its place.
template <class Row>
const UnaryRule& rule_saving_operand() {
  static const UnaryRule rule = [] {
    UnaryRule made = rule_of<Row>();
    made.saves = pointwise::Saves::kInput;
    return made;
  }();
  return rule;
}

/// The operator of a row, and its in-place form. Throws Error for a dtype that the rule refuses, and as its check().
Tensor unary(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes);
/// unary() into its operand. Throws Error as unary(), and where the result has a dtype of a higher category.
Tensor& unary_inplace(const UnaryRule& rule, const Tensor& self, const PointwiseAttributes& attributes);

/// The numbers of a row with parameters.
inline PointwiseAttributes parameters(const Scalar& a, const Scalar& b = 0, const Scalar& c = 0) {
  return {{a.value(), b.value(), c.value()}};
}
/// Parameters of a row. Where it computes integers, what the numbers are as elements: bounds do not make integers
/// fractional.
template <class Row>
PointwiseAttributes parameters_for(const Tensor& self, const Scalar& a, const Scalar& b = 0, const Scalar& c = 0) {
  const Dtype dtype = self.scalar_type();
  if (!pointwise::computes(Row::kIntegers) || !is_integral(dtype)) return parameters(a, b, c);
  return {{element_of(a, dtype), element_of(b, dtype), element_of(c, dtype)}};
}

template <>
inline PointwiseAttributes parameters_for<pointwise::Hardtanh>(const Tensor& self, const Scalar& low,
                                                               const Scalar& high, const Scalar&) {
  const Dtype dtype = self.scalar_type();
  if (!is_integral(dtype)) return parameters(low, high);
  return {{bound_of(low.toLong(), dtype, Bound::kLow), bound_of(high.toLong(), dtype, Bound::kHigh), {}}};
}

/// The width of a shrinking function, with which elements are compared.
inline PointwiseAttributes width_for(const Tensor& self, const Scalar& lambda) {
  return {{rounded_to(lambda.value(), self.scalar_type()), {}, {}}};
}
template <>
inline PointwiseAttributes parameters_for<pointwise::Hardshrink>(const Tensor& self, const Scalar& lambda,
                                                                 const Scalar&, const Scalar&) {
  return width_for(self, lambda);
}
template <>
inline PointwiseAttributes parameters_for<pointwise::Softshrink>(const Tensor& self, const Scalar& lambda,
                                                                 const Scalar&, const Scalar&) {
  return width_for(self, lambda);
}

template <class Row>
Tensor unary(const Tensor& self, PointwiseAttributes attributes = {}) {
  return unary(rule_of<Row>(), self, attributes);
}
/// Saves its operand, and in place its result, as PyTorch's.
template <>
Tensor unary<pointwise::Selu>(const Tensor& self, PointwiseAttributes attributes);
template <class Row>
Tensor& unary_inplace(const Tensor& self, PointwiseAttributes attributes = {}) {
  return unary_inplace(rule_of<Row>(), self, attributes);
}

}  // namespace tenon::ops
