// tenon::linalg: what torch::linalg has that needs no decomposition.
#pragma once

#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/linalg/products.h>

namespace tenon::linalg {

/// (sum |x|^ord)^(1 / ord) over `dim`, or over all elements. ord 0 counts the elements that are not 0; infinity gives
/// the largest magnitude, -infinity the smallest. x is converted to `dtype` before. Throws Error for a dtype that is
/// not floating.
TENON_API Tensor vector_norm(const Tensor& self, const Scalar& ord = 2, OptionalIntArrayRef dim = std::nullopt,
                             bool keepdim = false, std::optional<Dtype> dtype = std::nullopt);
/// A norm of each matrix in the two dims named: "fro", the root of the sum of squares; 1 and -1, the largest and the
/// smallest sum of magnitudes of a column; infinity and -infinity, those of a row. Throws Error for another one: 2, -2
/// and "nuc" need singular values.
TENON_API Tensor matrix_norm(const Tensor& self, std::string_view ord = "fro", IntArrayRef dim = {-2, -1},
                             bool keepdim = false, std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim = {-2, -1}, bool keepdim = false,
                             std::optional<Dtype> dtype = std::nullopt);
/// Without `ord` vector_norm() with 2 over `dim`, or over all elements. With it matrix_norm() where two dims are named,
/// or none and self is a matrix; else vector_norm(). Throws Error for `ord` without dims above rank 2.
TENON_API Tensor norm(const Tensor& self, const std::optional<Scalar>& ord = std::nullopt,
                      OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                      std::optional<Dtype> dtype = std::nullopt);
TENON_API Tensor norm(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim = std::nullopt,
                      bool keepdim = false, std::optional<Dtype> dtype = std::nullopt);
/// Sums of products along `dim`, without that dim; operands are broadcast, floating dtypes only. Throws Error for other
/// dtypes, and sizes that do not broadcast.
TENON_API Tensor vecdot(const Tensor& x, const Tensor& y, std::int64_t dim = -1);
/// tenon::cross() along `dim`, by default the last one.
inline Tensor cross(const Tensor& self, const Tensor& other, std::int64_t dim = -1) {
  return tenon::cross(self, other, dim);
}
/// See tenon::matmul().
inline Tensor matmul(const Tensor& self, const Tensor& other) { return tenon::matmul(self, other); }
/// See tenon::matrix_power().
inline Tensor matrix_power(const Tensor& self, std::int64_t n) { return self.matrix_power(n); }
/// tenon::diagonal(), by default of the last two dims.
inline Tensor diagonal(const Tensor& self, std::int64_t offset = 0, std::int64_t dim1 = -2, std::int64_t dim2 = -1) {
  return self.diagonal(offset, dim1, dim2);
}
/// chain_matmul() of two or more; the first may be a vector that stands for a row, the last one for a column, and the
/// result then lacks that dim. Throws Error for fewer than two, another rank, and sizes that do not fit.
TENON_API Tensor multi_dot(TensorList tensors);

}  // namespace tenon::linalg
