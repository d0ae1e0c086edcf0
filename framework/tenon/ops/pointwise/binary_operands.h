// What every operator on two operands does with them: one dtype, one shape, a result of the right layout, and the
// kernel.
#pragma once

#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/write_checks.h>

#include <string>

namespace tenon::ops {

/// The result of an operation on operands of these sizes, laid out after them.
inline Tensor allocate_result(const Tensor& a, const Tensor* b, const Dims& sizes, Dtype dtype) {
  const TensorImpl& left = a.impl();
  // A contiguous operand of the full size decides alone.
  if (left.is_contiguous() && (&left.sizes() == &sizes || left.sizes() == sizes)) [[likely]]
    return allocate_like(a, sizes, dtype);
  return b ? allocate_after({&a, b}, sizes, dtype) : allocate_preserving(a, dtype);
}

/// The tensor itself where it has the dtype; else a conversion, which `owner` keeps.
inline const Tensor& converted(const Tensor& tensor, Dtype dtype, Tensor& owner) {
  if (tensor.scalar_type() == dtype) [[likely]]
    return tensor;
  owner = tensor.to(dtype);
  return owner;
}

/// As broadcast_sizes(), and the error says which operator it was and what it got.
inline Dims broadcast_for(const char* op, const Dims& a, const Dims& b) {
  try {
    return broadcast_sizes(a, b);
  } catch (const Error& error) {
    throw Error(std::string(error.what()) + " (sizes " + to_string(a) + " and " + to_string(b) + ", in operator " + op +
                ")");
  }
}

/// The operands of a binary kernel in one dtype, and the sizes that they broadcast to.
struct Operands {
  Operands(const char* op, const Tensor& a, const Tensor& b, Dtype dtype)
      : left(converted(a, dtype, left_owner)),
        right(converted(b, dtype, right_owner)),
        sizes(a.impl().sizes() == b.impl().sizes()
                  ? a.impl().sizes()
                  : (broadcast = broadcast_for(op, a.impl().sizes(), b.impl().sizes()))) {}
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  Tensor left_owner, right_owner;
  Dims broadcast;
  const Tensor& left;
  const Tensor& right;
  const Dims& sizes;
};

/// Into `out`, of the broadcast sizes. Operands have `out`'s computation dtype.
inline void compute(OperatorId op, const Tensor& out, const Tensor& a, const Tensor& b,
                    const BinaryAttributes& attributes) {
  const Dims& sizes = out.impl().sizes();
  if (a.impl().sizes() == sizes && b.impl().sizes() == sizes) [[likely]] {
    const TensorView views[] = {out.impl().view(), a.impl().view(), b.impl().view()};
    return call_kernel(op, state_of(out), {views, 1}, {views + 1, 2}, &attributes);
  }
  Dims a_strides;
  Dims b_strides;
  const TensorView result = view_of(out);
  const TensorView inputs[] = {view_as(a, sizes, a_strides), view_as(b, sizes, b_strides)};
  call_kernel(op, state_of(out), {&result, 1}, inputs, &attributes);
}

inline void compute(OperatorId op, const Tensor& out, const Tensor& a, const BinaryAttributes& attributes) {
  const bool left = attributes.scalar_side == ScalarSide::kLeft;
  run(op, state_of(out), {view_of(out)}, {left ? undefined_view() : view_of(a), left ? view_of(a) : undefined_view()},
      &attributes);
}

/// A rank-0 tensor on another device than its partner takes part as a number.
inline bool is_foreign_number(const Tensor& tensor, const Tensor& partner) {
  return tensor.dim() == 0 && !(tensor.device() == partner.device());
}

}  // namespace tenon::ops
