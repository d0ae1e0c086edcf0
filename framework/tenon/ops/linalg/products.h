// Sums of products beyond one matrix product, each out of it.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// beta * self + alpha * (mat @ vec): (n, m) and (m) to (n), self (n) or of one element and at most one dim. With beta
/// 0 self is not read. Throws Error for other ranks, sizes that do not fit, and different dtypes.
inline Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta = 1,
                    const Scalar& alpha = 1) {
  return self.addmv(mat, vec, beta, alpha);
}
/// beta * self + alpha * outer(a, b): (n) and (m) to (n, m), self broadcast; dtypes are promoted. With beta 0 self is
/// not read. Throws Error for vectors of another rank, a self that does not broadcast to (n, m), and a beta or alpha
/// that the result's dtype cannot hold.
inline Tensor addr(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                   const Scalar& alpha = 1) {
  return self.addr(a, b, beta, alpha);
}
/// beta * self + alpha * the sum of a[i] @ b[i]: (b, n, m) and (b, m, p) to (n, p), to which self is broadcast. With
/// beta 0 self is not read. Throws Error for other ranks, sizes that do not fit, and different dtypes.
inline Tensor addbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                     const Scalar& alpha = 1) {
  return self.addbmm(a, b, beta, alpha);
}
/// Sums of products over the last dims, which have one size: the result has self's other dims, then other's. Where an
/// operand has no dimension, their product, dtypes promoted. Throws Error where the sizes of the last dims or the
/// dtypes differ.
inline Tensor inner(const Tensor& self, const Tensor& other) { return self.inner(other); }
/// dot() of two vectors (n), since there are no complex numbers. Throws Error as dot().
inline Tensor vdot(const Tensor& self, const Tensor& other) { return self.vdot(other); }
/// outer() by BLAS's name: (n) and (m) to (n, m). Throws Error as outer().
inline Tensor ger(const Tensor& self, const Tensor& other) { return self.outer(other); }
/// The Kronecker product: a block of `other` times each element of self; the size of each dim is the product of both,
/// and missing leading dims count as 1. dtypes are promoted.
inline Tensor kron(const Tensor& self, const Tensor& other) { return self.kron(other); }
/// Matrices (…, k, k) to the power of n by squaring; 0 gives the identity. Throws Error for a negative n, which would
/// need an inverse.
inline Tensor matrix_power(const Tensor& self, std::int64_t n) { return self.matrix_power(n); }
/// The product of matrices in the order that needs the fewest multiplications. Throws Error for another rank than 2,
/// and for no matrix at all.
TENON_API Tensor chain_matmul(TensorList matrices);
/// Sums of products over the dims named, which are paired in order and have one size, or 1: the result has self's other
/// dims, then other's. Throws Error where sizes, dtypes or the numbers of dims differ.
TENON_API Tensor tensordot(const Tensor& self, const Tensor& other, IntArrayRef dims_self, IntArrayRef dims_other);
/// Einstein's summation, "bij,bjk->bik": a letter is a dim, a repeated one in an operand its diagonal, one that is not
/// in the result is summed over, "..." stands for dims that are broadcast. Without "->" the result has, in order of the
/// alphabet (capitals first), the letters that occur once, after those of "...". Operands are contracted from left to
/// right, or along `path`, which lists pairs of positions as PyTorch's does. Throws Error for no operand; for a
/// subscript that is not a letter, a "." outside of "...", and an ellipsis given twice; for another number of operands
/// or of dims than the equation has; for a size that differs from another of its letter and is not 1, on a diagonal
/// also then; for a letter of the result that comes twice or in no operand; and for a path that is not a list of pairs
/// of the operands left.
TENON_API Tensor einsum(std::string_view equation, TensorList operands, OptionalIntArrayRef path = std::nullopt);

}  // namespace tenon
