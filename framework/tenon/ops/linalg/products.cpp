// Sums of products, laid out so that one matrix product does the work.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/linalg/products.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <functional>
#include <limits>

namespace tenon {

using namespace ops;

namespace {

void check_vector(const char* op, const char* argument, const Tensor& tensor) {
  if (tensor.dim() != 1)
    throw Error(fmt::format("{}: Expected 1-D argument {}, but got {}-D", op, argument, tensor.dim()));
}

}  // namespace

Tensor Tensor::addmv(const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) const {
  TENON_AUTOCAST_METHOD(addmv, *this, mat, vec, beta, alpha)
  if (mat.dim() != 2 || vec.dim() != 1 || dim() > 1) {
    throw Error(fmt::format("vector + matrix @ vector expected, got {}, {}, {}", dim(), mat.dim(), vec.dim()));
  }
  if (mat.size(1) != vec.size(0) || (numel() != 1 && numel() != mat.size(0))) {
    throw Error(fmt::format("size mismatch, got input ({}), mat ({}x{}), vec ({})", dim() == 0 ? 1 : size(0),
                            mat.size(0), mat.size(1), vec.size(0)));
  }
  const Tensor column = dim() == 0 ? *this : unsqueeze(1);
  return as_owned(column.addmm(mat, vec.unsqueeze(1), beta, alpha).squeeze(1));
}
Tensor& Tensor::addmv_(const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) const {
  TENON_SCOPE(addmv_, *this, mat, vec, beta, alpha)
  return overwrite("addmv_", *this, addmv(mat, vec, beta, alpha));
}

namespace {

/// beta * self + alpha * column * row in one dtype, or as truth values; what is times 0 is not read.
Tensor outer_sum(const Tensor& self, const Tensor& column, const Tensor& row, const Scalar& beta, const Scalar& alpha) {
  if (row.scalar_type() == kBool) {
    Tensor grown = alpha.toBool() ? column.logical_and(row) : zeros_like(column.logical_and(row));
    return beta.toBool() ? self.logical_or(grown) : grown;
  }
  Tensor grown = (alpha.equal(1) ? column : column.mul(alpha)).mul(row);
  if (beta.equal(0)) return grown;
  return (beta.equal(1) ? self : self.mul(beta)).add(grown);
}

}  // namespace

Tensor Tensor::addr(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) const {
  TENON_AUTOCAST_METHOD(addr, *this, a, b, beta, alpha)
  check_vector("addr", "vec1", a);
  check_vector("addr", "vec2", b);
  check_same_device("addr", {this, &a, &b});
  const Dtype dtype = promote_types(promote_types(scalar_type(), a.scalar_type()), b.scalar_type());
  check_factor("beta", beta, dtype, "addr");
  check_factor("alpha", alpha, dtype, "addr");
  const Tensor x = expand({a.size(0), b.size(0)}).to(dtype);
  const Tensor column = a.to(dtype), row = b.to(dtype);
  Recording recording = record<2>("AddrBackward0", {this, &a, &b}, [beta, alpha](Backward& backward) {
    const Tensor& gradient = backward.grad();
    if (backward.needs(0)) backward.set(0, gradient.mul(beta));
    if (backward.needs(1)) backward.set(1, gradient.mv(backward.saved(1)).mul(alpha));
    if (backward.needs(2)) backward.set(2, gradient.t().mv(backward.saved(0)).mul(alpha));
  });
  if (recording) {
    if (autograd::requires_grad(b)) recording.save(0, column);
    if (autograd::requires_grad(a)) recording.save(1, row);
  }
  Tensor result;
  {
    NoGradGuard no_grad;
    result = laid_out_after(x, x, outer_sum(x, column.unsqueeze(1), row.unsqueeze(0), beta, alpha));
  }
  recording.output(result);
  return result;
}
Tensor& Tensor::addr_(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) const {
  TENON_SCOPE(addr_, *this, a, b, beta, alpha)
  if (dim() != 2) throw Error(fmt::format("2D tensor expected, got {}D tensor for input", dim()));
  return overwrite("addr_", *this, addr(a, b, beta, alpha));
}

Tensor Tensor::addbmm(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) const {
  TENON_AUTOCAST_METHOD(addbmm, *this, a, b, beta, alpha)
  if (a.dim() != 3) throw Error("batch1 must be a 3D tensor");
  if (b.dim() != 3) throw Error("batch2 must be a 3D tensor");
  if (a.size(0) != b.size(0)) {
    throw Error(fmt::format("batch1 and batch2 must have same number of batches, got {} and {}", a.size(0), b.size(0)));
  }
  if (a.size(2) != b.size(1)) {
    throw Error(
        fmt::format("Incompatible matrix sizes for bmm ({}x{} and {}x{})", a.size(1), a.size(2), b.size(1), b.size(2)));
  }
  // The batch joins the dim that is summed over.
  const Tensor wide = a.transpose(0, 1).reshape({a.size(1), a.size(0) * a.size(2)});
  return addmm(wide, b.reshape({b.size(0) * b.size(1), b.size(2)}), beta, alpha);
}
Tensor& Tensor::addbmm_(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) const {
  TENON_SCOPE(addbmm_, *this, a, b, beta, alpha)
  return overwrite("addbmm_", *this, addbmm(a, b, beta, alpha));
}
Tensor& Tensor::baddbmm_(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) const {
  TENON_SCOPE(baddbmm_, *this, a, b, beta, alpha)
  return overwrite("baddbmm_", *this, baddbmm(a, b, beta, alpha));
}

Tensor Tensor::vdot(const Tensor& other) const {
  TENON_AUTOCAST_METHOD(vdot, *this, other)
  return dot(other);
}
Tensor Tensor::cross(const Tensor& other, std::optional<std::int64_t> dim) const {
  return tenon::cross(*this, other, dim);
}

Tensor Tensor::inner(const Tensor& other) const {
  TENON_AUTOCAST_METHOD(inner, *this, other)
  if (dim() == 0 || other.dim() == 0) return mul(other);
  check_same_dtype("inner", {this, &other});
  if (size(-1) != other.size(-1)) {
    throw Error("inner() the last dimension must match on both input tensors but got shapes " + to_string(sizes()) +
                " and " + to_string(other.sizes()));
  }
  return tensordot(*this, other, {-1}, {-1});
}

Tensor Tensor::kron(const Tensor& other) const {
  TENON_SCOPE(kron, *this, other)
  const int rank = std::max(impl().rank(), other.impl().rank());
  // (s0, 1, s1, 1, …) times (1, o0, 1, o1, …).
  Dims own, others, sizes;
  for (int i = 0; i < rank; ++i) {
    const int at = i - (rank - impl().rank()), other_at = i - (rank - other.impl().rank());
    const std::int64_t a = at < 0 ? 1 : size(at), b = other_at < 0 ? 1 : other.size(other_at);
    own.push_back(a);
    own.push_back(1);
    others.push_back(1);
    others.push_back(b);
    sizes.push_back(a * b);
  }
  return as_owned(reshape(own).mul(other.reshape(others)).reshape(sizes));
}

Tensor Tensor::matrix_power(std::int64_t n) const {
  TENON_SCOPE(matrix_power, *this, n)
  if (dim() < 2 || size(-1) != size(-2)) {
    throw Error("linalg.matrix_power: The input tensor must be at least 2-D and its last dims equal, got sizes " +
                to_string(sizes()));
  }
  if (n < 0) throw Error(fmt::format("matrix_power: there is no inverse here for n = {}; n must be >= 0", n));
  if (n == 0) return eye(size(-1), options()).expand(sizes()).clone(MemoryFormat::Contiguous);
  if (n == 1) return clone(MemoryFormat::Contiguous);
  Tensor result, square = *this;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) result = result.defined() ? result.matmul(square) : square;
    if (n > 1) square = square.matmul(square);
  }
  return result;
}

Tensor chain_matmul(TensorList matrices) {
  TENON_AUTOCAST(chain_matmul, matrices)
  if (matrices.empty()) throw Error("chain_matmul(): Expected one or more matrices");
  const std::size_t count = matrices.size();
  std::vector<double> sides;  // of matrix i: sides[i] and sides[i + 1]
  for (const Tensor& matrix : matrices) {
    if (matrix.dim() != 2)
      throw Error(fmt::format("chain_matmul(): Expected 2-D tensors, got a {}-D one", matrix.dim()));
    sides.push_back(static_cast<double>(matrix.size(0)));
  }
  sides.push_back(static_cast<double>(matrices[count - 1].size(1)));
  const bool is_of_three = count == 3;  // of equal costs PyTorch takes (AB)C there, and elsewhere the first
  // cost[i][j]: of the product of matrices i to j; cut[i][j]: the last one of its left factor.
  std::vector<std::vector<double>> cost(count, std::vector<double>(count, 0));
  std::vector<std::vector<std::size_t>> cut(count, std::vector<std::size_t>(count, 0));
  for (std::size_t length = 1; length < count; ++length) {
    for (std::size_t i = 0; i + length < count; ++i) {
      const std::size_t j = i + length;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (std::size_t k = i; k < j; ++k) {
        const double whole = cost[i][k] + cost[k + 1][j] + sides[i] * sides[k + 1] * sides[j + 1];
        if (is_of_three ? whole > cost[i][j] : whole >= cost[i][j]) continue;
        cost[i][j] = whole;
        cut[i][j] = k;
      }
    }
  }
  const std::function<Tensor(std::size_t, std::size_t)> product = [&](std::size_t i, std::size_t j) {
    return i == j ? matrices[i] : product(i, cut[i][j]).mm(product(cut[i][j] + 1, j));
  };
  return product(0, count - 1);
}

Tensor tensordot(const Tensor& self, const Tensor& other, IntArrayRef dims_self, IntArrayRef dims_other) {
  TENON_AUTOCAST(tensordot, self, other, dims_self, dims_other)
  if (dims_self.size() != dims_other.size()) {
    throw Error("both dimension lists should have same length, got " + to_string(dims_self) + " and " +
                to_string(dims_other));
  }
  check_same_dtype("tensordot", {&self, &other});
  Tensor a = self, b = other;
  std::uint32_t summed_self = 0, summed_other = 0;
  std::vector<std::int64_t> paired_self, paired_other;
  for (std::size_t i = 0; i < dims_self.size(); ++i) {
    const int at = wrap_dim(dims_self[i], self.impl().rank()), other_at = wrap_dim(dims_other[i], other.impl().rank());
    if ((summed_self >> at & 1) || (summed_other >> other_at & 1)) {
      throw Error("tensordot: a dim appears multiple times in the list of dims " + to_string(dims_self) + " or " +
                  to_string(dims_other));
    }
    if (a.size(at) == 1) {
      b = b.sum(other_at, true, b.scalar_type());
    } else if (b.size(other_at) == 1) {
      a = a.sum(at, true, a.scalar_type());
    } else if (a.size(at) != b.size(other_at)) {
      throw Error(
          fmt::format("contracted dimensions need to match, but first has size {} in dim {} and second has size {} in "
                      "dim {}",
                      a.size(at), dims_self[i], b.size(other_at), dims_other[i]));
    }
    summed_self |= 1u << at;
    summed_other |= 1u << other_at;
    paired_self.push_back(at);
    paired_other.push_back(other_at);
  }
  // (rows, summed) times (summed, columns).
  std::vector<std::int64_t> order, other_order = paired_other;
  Dims sizes;
  std::int64_t rows = 1, columns = 1, summed = 1;
  for (int i = 0; i < a.impl().rank(); ++i) {
    if (summed_self >> i & 1) continue;
    order.push_back(i);
    sizes.push_back(a.size(i));
    rows *= a.size(i);
  }
  for (const std::int64_t at : paired_self) {
    order.push_back(at);
    summed *= a.size(at);
  }
  for (int i = 0; i < b.impl().rank(); ++i) {
    if (summed_other >> i & 1) continue;
    other_order.push_back(i);
    sizes.push_back(b.size(i));
    columns *= b.size(i);
  }
  return a.permute(order).reshape({rows, summed}).mm(b.permute(other_order).reshape({summed, columns})).reshape(sizes);
}

}  // namespace tenon
