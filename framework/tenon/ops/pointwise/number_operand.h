// Numbers as operands of binary operators, and tensors without dims that count as numbers.
#pragma once

#include <tenon/ops/pointwise/binary.h>

namespace tenon::ops {

/// The number as the operand of a row that computes in `dtype`: rounded to 16 bits where these are computed, but for
/// factors and divisors on the right.
ScalarValue number_of(const BinaryRule& rule, const Scalar& number, Dtype dtype);

/// Computes a row of two tensors into `result`. `converted` is `right` in the dtype that is computed; a right operand
/// on the CPU without dims is taken as a number with all its digits, as PyTorch's original_scalar_value() is.
void compute_pair(const BinaryRule& rule, const Tensor& result, const Tensor& left, const Tensor& right,
                  const Tensor& converted, const BinaryAttributes& attributes);

/// Attributes with alpha, which is checked against the result's dtype unless it is 1. Throws Error, naming `op`.
BinaryAttributes with_alpha(const Scalar& alpha, const Tensor& a, const Tensor& b, const char* op);
/// So of a difference, where PyTorch checks what it adds: -alpha. Throws Error as with_alpha() does.
BinaryAttributes with_alpha_of_difference(const Scalar& alpha, const Tensor& a, const Tensor& b, const char* op);
/// other * alpha, as a number of other's kind. Throws Error, naming `op`, for an alpha that the result's dtype
/// excludes.
Scalar product(const Tensor& self, const Scalar& other, const Scalar& alpha, const char* op);

}  // namespace tenon::ops
