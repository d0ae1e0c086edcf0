// Matrix products.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Vectors, matrices and batches of them: (…, n, k) (…, k, m) -> (…, n, m), batches broadcast, the dims of vectors
/// dropped. Throws Error where sizes or dtypes differ.
TENON_API Tensor matmul(const Tensor& self, const Tensor& other);
/// (n, k) (k, m) -> (n, m). Throws Error for other ranks or sizes that do not fit.
TENON_API Tensor mm(const Tensor& self, const Tensor& other);
/// (B, n, k) (B, k, m) -> (B, n, m). Throws Error for other ranks or sizes that do not fit.
TENON_API Tensor bmm(const Tensor& self, const Tensor& other);
/// (n, k) (k) -> (n).
TENON_API Tensor mv(const Tensor& self, const Tensor& other);
/// The sum of products of two vectors of one length. Throws Error for other ranks.
TENON_API Tensor dot(const Tensor& self, const Tensor& other);
/// (n), (m) -> (n, m), the products of all pairs.
TENON_API Tensor outer(const Tensor& self, const Tensor& other);
/// beta * self + alpha * a b: a (n, k), b (k, m), self broadcast to (n, m). With beta 0, NaN in self count for nothing.
TENON_API Tensor addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                       const Scalar& alpha = 1);
/// beta * self + alpha * a b for each of a batch: a (B, n, k), b (B, k, m), self broadcast to (B, n, m).
TENON_API Tensor baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                         const Scalar& alpha = 1);
/// x @ weight^T + bias.
TENON_API Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt);
TENON_API Tensor& linear_out(Tensor& out, const Tensor& input, const Tensor& weight,
                             const std::optional<Tensor>& bias = std::nullopt);
/// a (…, m), weight (n, m, k), b (…, k) -> (…, n), plus bias (n).
TENON_API Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight,
                          const std::optional<Tensor>& bias = std::nullopt);
/// The cross product along `dim` of size 3 (the first such where none is given); sizes are broadcast.
TENON_API Tensor cross(const Tensor& self, const Tensor& other, std::optional<std::int64_t> dim = std::nullopt);

}  // namespace tenon
