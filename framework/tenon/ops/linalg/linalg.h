// tenon::linalg: what torch::linalg has that needs no decomposition.
#pragma once

#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/linalg/products.h>

namespace tenon::linalg {

/// (sum |x|^ord)^(1 / ord) over `dim`, or over all elements; ord 0 counts what is not 0, ±infinity is an extreme.
TENON_API Tensor vector_norm(const Tensor& self, const Scalar& ord = 2, OptionalIntArrayRef dim = std::nullopt,
                             bool keepdim = false, std::optional<Dtype> dtype = std::nullopt);
/// Of matrices in the two dims named: "fro", or the largest (ord > 0) or smallest sum of magnitudes of a column (±1) or
/// a row (±infinity). Throws Error for 2, -2 and "nuc", which need singular values.
TENON_API Tensor matrix_norm(const Tensor& self, std::string_view ord = "fro", IntArrayRef dim = {-2, -1},
                             bool keepdim = false, std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim = {-2, -1}, bool keepdim = false,
                             std::optional<Dtype> dtype = std::nullopt);
/// Without `ord` the 2-norm of all elements; else a matrix's norm where two dims are meant, a vector's where one is.
TENON_API Tensor norm(const Tensor& self, const std::optional<Scalar>& ord = std::nullopt,
                      OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                      std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor norm(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim = std::nullopt,
                      bool keepdim = false, std::optional<Dtype> dtype = std::nullopt);
/// Sums of products along `dim`.
TENON_API Tensor vecdot(const Tensor& x, const Tensor& y, std::int64_t dim = -1);
/// The cross product along `dim`, of size 3.
inline Tensor cross(const Tensor& self, const Tensor& other, std::int64_t dim = -1) {
  return tenon::cross(self, other, dim);
}
/// See tenon::matmul().
inline Tensor matmul(const Tensor& self, const Tensor& other) { return tenon::matmul(self, other); }
/// See tenon::matrix_power().
inline Tensor matrix_power(const Tensor& self, std::int64_t n) { return self.matrix_power(n); }
/// diagonal() of the last two dims.
inline Tensor diagonal(const Tensor& self, std::int64_t offset = 0, std::int64_t dim1 = -2, std::int64_t dim2 = -1) {
  return self.diagonal(offset, dim1, dim2);
}
/// The product of matrices; the first may be a row and the last a column, as vectors.
TENON_API Tensor multi_dot(TensorList tensors);

}  // namespace tenon::linalg
