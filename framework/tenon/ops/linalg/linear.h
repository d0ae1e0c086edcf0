// Matrix products.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Vectors, matrices and batches of matrices: (…, n, k) (…, k, m) -> (…, n, m), leading dims broadcast. A vector (k)
/// stands for a row at the left and a column at the right, and the result lacks that dim. Throws Error where sizes do
/// not fit, dtypes differ, or an operand has no dimension.
TENON_API Tensor matmul(const Tensor& self, const Tensor& other);
/// (n, k) (k, m) -> (n, m). Throws Error for other ranks, sizes that do not fit, and different dtypes.
TENON_API Tensor mm(const Tensor& self, const Tensor& other);
/// (B, n, k) (B, k, m) -> (B, n, m), nothing broadcast. Throws Error for other ranks, sizes that do not fit, and
/// different dtypes.
TENON_API Tensor bmm(const Tensor& self, const Tensor& other);
/// (n, k) (k) -> (n). Throws Error as mm().
TENON_API Tensor mv(const Tensor& self, const Tensor& other);
/// The sum of products of two vectors, a tensor of no dimension. Throws Error for other ranks, different lengths and
/// dtypes.
TENON_API Tensor dot(const Tensor& self, const Tensor& other);
/// (n), (m) -> (n, m), the products of all pairs; dtypes are promoted. Throws Error for other ranks.
TENON_API Tensor outer(const Tensor& self, const Tensor& other);
/// beta * self + alpha * a b: a (n, k), b (k, m), self broadcast to (n, m). With beta 0 self is not read, not even a
/// NaN. Throws Error as mm().
TENON_API Tensor addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                       const Scalar& alpha = 1);
/// addmm() for each matrix of a batch: a (B, n, k), b (B, k, m), self broadcast to (B, n, m). Throws Error as bmm().
TENON_API Tensor baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                         const Scalar& alpha = 1);
/// input (…, in) times weight (out, in) transposed, plus bias (out): (…, out). Throws Error where the sizes do not fit.
TENON_API Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt);
TENON_API Tensor& linear_out(Tensor& out, const Tensor& input, const Tensor& weight,
                             const std::optional<Tensor>& bias = std::nullopt);
/// Sums over i and j of a_i * weight_oij * b_j: a (…, m), b (…, k), weight (n, m, k) -> (…, n), plus bias (n). Throws
/// Error where the sizes do not fit.
TENON_API Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight,
                          const std::optional<Tensor>& bias = std::nullopt);
/// The cross product of vectors of 3 along `dim`, by default the first dim of size 3 (linalg::cross: the last dim). The
/// operands are broadcast, but must have one rank. Throws Error for another rank, and where the size of `dim` is not 3.
TENON_API Tensor cross(const Tensor& self, const Tensor& other, std::optional<std::int64_t> dim = std::nullopt);

}  // namespace tenon
