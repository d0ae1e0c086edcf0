// tenon::linalg out of reductions and products.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/linalg/linalg.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon::linalg {

namespace {

Tensor in_dtype(const Tensor& self, std::optional<Dtype> dtype) { return dtype ? self.to(*dtype) : self; }

/// The two dims of a matrix, each in 0 … rank - 1.
std::pair<int, int> matrix_dims(const Tensor& self, IntArrayRef dim) {
  if (dim.size() != 2) throw Error("linalg.matrix_norm: dim must be a 2-tuple. Got " + to_string(dim));
  if (self.dim() < 2) {
    throw Error(
        fmt::format("linalg.matrix_norm: The input tensor A must have at least 2 dimensions, got {}", self.dim()));
  }
  const int a = wrap_dim(dim[0], self.impl().rank()), b = wrap_dim(dim[1], self.impl().rank());
  if (a == b) throw Error("linalg.matrix_norm: dims must be different. Got " + to_string(dim));
  return {a, b};
}

}  // namespace

Tensor vector_norm(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<Dtype> dtype) {
  TENON_SCOPE(linalg_vector_norm, self, ord, dim, keepdim, dtype)
  TENON_AUTOCAST_AS(vector_norm, tenon::linalg::vector_norm(operands...), self, ord, dim, keepdim, dtype)
  const Tensor x = in_dtype(self, dtype);
  ops::check_floating("linalg.vector_norm", x);
  const double p = ord.toDouble();
  if (x.numel() == 0 && (p < 0 || std::isinf(p))) {
    throw Error(
        fmt::format("linalg.vector_norm cannot compute the {} norm on an empty tensor because the operation does not "
                    "have an identity",
                    p));
  }
  const IntArrayRef dims = dim.has_value() ? *dim : IntArrayRef();
  return tenon::norm(x, std::optional<Scalar>(p), dims, keepdim);
}

Tensor matrix_norm(const Tensor& self, std::string_view ord, IntArrayRef dim, bool keepdim,
                   std::optional<Dtype> dtype) {
  TENON_SCOPE(linalg_matrix_norm, self, ord, dim, keepdim, dtype)
  TENON_AUTOCAST_AS(matrix_norm, tenon::linalg::matrix_norm(operands...), self, ord, dim, keepdim, dtype)
  matrix_dims(self, dim);
  if (ord == "nuc") throw Error("linalg.matrix_norm: order nuc needs singular values, which are not computed here");
  if (ord != "fro") throw Error(fmt::format("linalg.matrix_norm: Order {} not supported.", ord));
  return vector_norm(self, 2, OptionalIntArrayRef(dim), keepdim, dtype);
}
Tensor matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim, bool keepdim, std::optional<Dtype> dtype) {
  TENON_SCOPE(linalg_matrix_norm, self, ord, dim, keepdim, dtype)
  TENON_AUTOCAST_AS(matrix_norm, tenon::linalg::matrix_norm(operands...), self, ord, dim, keepdim, dtype)
  const auto [row, column] = matrix_dims(self, dim);
  const double p = ord.toDouble();
  if (std::abs(p) == 2) {
    throw Error(fmt::format("linalg.matrix_norm: order {} needs singular values, which are not computed here", p));
  }
  if (std::abs(p) != 1 && !std::isinf(p)) throw Error(fmt::format("linalg.matrix_norm: Order {} not supported.", p));
  // Sums along one dim, the extreme of them along the other.
  const int summed = std::isinf(p) ? column : row;
  const int compared = std::isinf(p) ? row : column;
  const Tensor sums = vector_norm(self, 1, OptionalIntArrayRef(std::int64_t{summed}), true, dtype);
  Tensor result = p > 0 ? sums.amax(compared, true) : sums.amin(compared, true);
  if (keepdim) return result;
  return ops::as_owned(result.squeeze(std::max(row, column)).squeeze(std::min(row, column)));
}

Tensor norm(const Tensor& self, const std::optional<Scalar>& ord, OptionalIntArrayRef dim, bool keepdim,
            std::optional<Dtype> dtype) {
  TENON_SCOPE(linalg_norm, self, ord, dim, keepdim, dtype)
  if (!ord) return vector_norm(self, 2, dim, keepdim, dtype);
  if (dim.has_value() ? dim->size() == 2 : self.dim() == 2) {
    return matrix_norm(self, *ord, dim.has_value() ? *dim : IntArrayRef({0, 1}), keepdim, dtype);
  }
  if (!dim.has_value() && self.dim() > 2) {
    throw Error(fmt::format("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.",
                            self.dim()));
  }
  return vector_norm(self, *ord, dim, keepdim, dtype);
}
Tensor norm(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim, bool keepdim,
            std::optional<Dtype> dtype) {
  TENON_SCOPE(linalg_norm, self, ord, dim, keepdim, dtype)
  return matrix_norm(self, ord, dim.has_value() ? *dim : IntArrayRef({0, 1}), keepdim, dtype);
}

Tensor vecdot(const Tensor& x, const Tensor& y, std::int64_t dim) {
  TENON_SCOPE(linalg_vecdot, x, y, dim)
  TENON_AUTOCAST_AS(vecdot, tenon::linalg::vecdot(operands...), x, y, dim)
  for (const Tensor* operand : {&x, &y}) ops::check_floating("linalg.vecdot", *operand);
  return x.mul(y).sum(OptionalIntArrayRef(dim));
}

Tensor multi_dot(TensorList tensors) {
  TENON_SCOPE(linalg_multi_dot, tensors)
  TENON_AUTOCAST_AS(multi_dot, tenon::linalg::multi_dot(operands...), tensors)
  if (tensors.size() < 2)
    throw Error(fmt::format("multi_dot(): expected at least 2 tensors but got {}", tensors.size()));
  std::vector<Tensor> matrices = tensors.vec();
  const bool row = matrices.front().dim() == 1, column = matrices.back().dim() == 1;
  if (row) matrices.front() = matrices.front().unsqueeze(0);
  if (column) matrices.back() = matrices.back().unsqueeze(1);
  Tensor result = chain_matmul(matrices);
  if (column) result = result.squeeze(1);
  return row ? result.squeeze(0) : result;
}

}  // namespace tenon::linalg
