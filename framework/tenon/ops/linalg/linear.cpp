// Matrix products over one kernel: 2-D or batched, any strides, with an addend.
#include <tenon/autograd/kept_results.h>
#include <tenon/kernel/attributes/linear.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/out_argument.h>
#include <tenon/ops/support/support.h>

namespace tenon {

using namespace ops;

namespace {

std::string shapes(const Tensor& a, const Tensor& b) {
  return std::to_string(a.size(-2)) + "x" + std::to_string(a.size(-1)) + " and " + std::to_string(b.size(-2)) + "x" +
         std::to_string(b.size(-1));
}

bool is_transposed(const Tensor& matrix) { return matrix.stride(-1) != 1 && matrix.stride(-2) == 1; }

/// x @ y, with `transposed` as a transposed view of a contiguous tensor: the gradient of a factor that is a transposed
/// view is then contiguous once transposed back, and needs no copy.
Tensor product_like(bool transposed, const Tensor& x, const Tensor& y) {
  const auto times = [](const Tensor& left, const Tensor& right) {
    return left.dim() == 3 ? left.bmm(right) : left.mm(right);
  };
  if (!transposed) return times(x, y);
  return times(y.transpose(-2, -1), x.transpose(-2, -1)).transpose(-2, -1);
}

/// A product as users call it, and its node.
struct Product {
  const char* op;
  const char* node;
};
constexpr Product kMm{"mm", "MmBackward0"}, kBmm{"bmm", "BmmBackward0"}, kAddmm{"addmm", "AddmmBackward0"},
    kBaddbmm{"baddbmm", "BaddbmmBackward0"};

/// alpha * a @ b + beta * addend for rank 2 or 3; the addend (may be undefined) broadcasts. `shape`: sizes of the
/// result where the rows of a were folded from several dimensions; the result is not a view, so that it may be changed
/// in place.
Tensor product(const Product& kind, const Tensor& a, const Tensor& b, const Tensor& addend = {}, double beta = 1,
               double alpha = 1, const Dims* shape = nullptr) {
  check_same_device(kind.op, {&a, &b, &addend});
  check_same_dtype(kind.op, {&a, &b});
  if (addend.defined() && addend.scalar_type() != b.scalar_type()) {
    throw Error(std::string("self and mat2 must have the same dtype, but got ") + toString(addend.scalar_type()) +
                " and " + toString(b.scalar_type()) + " (in operator " + kind.op + ")");
  }
  const int rank = a.impl().rank();
  Dims sizes;
  if (rank == 3) {
    if (a.size(0) != b.size(0) || a.size(2) != b.size(1)) {
      throw Error("Expected size for first two dimensions of batch2 tensor to be: [" + std::to_string(a.size(0)) +
                  ", " + std::to_string(a.size(2)) + "] but got: [" + std::to_string(b.size(0)) + ", " +
                  std::to_string(b.size(1)) + "].");
    }
    sizes.push_back(a.size(0));
  } else if (a.size(1) != b.size(0)) {
    throw Error("mat1 and mat2 shapes cannot be multiplied (" + shapes(a, b) + ")");
  }
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  if (addend.defined() && !is_expandable_to(addend.impl().sizes(), sizes)) {
    addend.expand(sizes);  // throws, and names the dimension
  }
  const bool is_folded = shape != nullptr;
  const bool a_transposed = is_transposed(a), b_transposed = is_transposed(b);
  Recording recording = record<2>(kind.node, {&a, &b, &addend}, [=](Backward& backward) {
    const Tensor gradient = is_folded ? backward.take_grad().reshape(sizes) : backward.take_grad();
    const Tensor scaled = alpha == 1 ? gradient : gradient.mul(alpha);
    if (backward.needs(0)) backward.set(0, product_like(a_transposed, scaled, backward.saved(1).transpose(-2, -1)));
    if (backward.needs(1)) backward.set(1, product_like(b_transposed, backward.saved(0).transpose(-2, -1), scaled));
    if (backward.needs(2)) backward.set(2, beta == 1 ? gradient : gradient.mul(beta));
  });
  if (recording) {
    if (autograd::requires_grad(b)) recording.save(0, a);
    if (autograd::requires_grad(a)) recording.save(1, b);
  }
  Tensor result;
  autograd::computed_once(kind.op, {&result}, [&] {
    result = allocate_like(a, shape ? *shape : sizes, a.scalar_type());
    const Tensor flat = shape ? alias_of(result, sizes, contiguous_strides(sizes), 0) : result;
    const MatmulAttributes attributes{alpha, beta};
    Dims strides;
    run(TENON_OP("matmul"), ops::state_of(a), {view_of(flat)},
        {view_of(a), view_of(b), addend.defined() ? view_as(addend, sizes, strides) : undefined_view()}, &attributes);
  });
  recording.output(result);
  return result;
}

void check_rank(const char* name, const char* argument, const Tensor& tensor, std::int64_t rank) {
  if (tensor.dim() != rank) {
    throw Error(std::string(argument) + " must be a " +
                (rank == 1   ? "vector"
                 : rank == 2 ? "matrix"
                             : "3D tensor") +
                ", got " + std::to_string(tensor.dim()) + "-D tensor (in operator " + name + ")");
  }
}

}  // namespace

Tensor mm(const Tensor& self, const Tensor& other) {
  TENON_AUTOCAST(mm, self, other)
  check_rank("mm", "self", self, 2);
  check_rank("mm", "mat2", other, 2);
  return product(kMm, self, other);
}
Tensor bmm(const Tensor& self, const Tensor& other) {
  TENON_AUTOCAST(bmm, self, other)
  check_rank("bmm", "batch1", self, 3);
  check_rank("bmm", "batch2", other, 3);
  return product(kBmm, self, other);
}
Tensor mv(const Tensor& self, const Tensor& other) {
  TENON_AUTOCAST(mv, self, other)
  check_rank("mv", "input", self, 2);
  check_rank("mv", "vec", other, 1);
  if (self.size(1) != other.size(0)) {
    throw Error("size mismatch, got input (" + std::to_string(self.size(0)) + "), mat (" +
                std::to_string(self.size(0)) + "x" + std::to_string(self.size(1)) + "), vec (" +
                std::to_string(other.size(0)) + ")");
  }
  return as_owned(mm(self, other.unsqueeze(1)).squeeze(1));
}
Tensor dot(const Tensor& self, const Tensor& other) {
  TENON_AUTOCAST(dot, self, other)
  if (self.dim() != 1 || other.dim() != 1) {
    throw Error("1D tensors expected, but got " + std::to_string(self.dim()) + "D and " + std::to_string(other.dim()) +
                "D tensors");
  }
  if (self.scalar_type() != other.scalar_type()) {
    throw Error(std::string("dot : expected both vectors to have same dtype, but found ") +
                toString(self.scalar_type()) + " and " + toString(other.scalar_type()));
  }
  if (self.numel() != other.numel()) {
    throw Error("inconsistent tensor size, expected tensor " + to_string(self.sizes()) + " and src " +
                to_string(other.sizes()) + " to have the same number of elements, but got " +
                std::to_string(self.numel()) + " and " + std::to_string(other.numel()) + " elements respectively");
  }
  return as_owned(mm(self.unsqueeze(0), other.unsqueeze(1)).view(IntArrayRef()));
}
Tensor outer(const Tensor& self, const Tensor& other) {
  TENON_SCOPE(outer, self, other)
  for (const Tensor* vector : {&self, &other}) {
    if (vector->dim() != 1) {
      throw Error(std::string("outer: Expected 1-D argument ") + (vector == &self ? "self" : "vec2") + ", but got " +
                  std::to_string(vector->dim()) + "-D");
    }
  }
  return self.unsqueeze(1).mul(other.unsqueeze(0));
}
Tensor addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  TENON_AUTOCAST(addmm, self, a, b, beta, alpha)
  check_rank("addmm", "mat1", a, 2);
  check_rank("addmm", "mat2", b, 2);
  return product(kAddmm, a, b, self, beta.toDouble(), alpha.toDouble());
}
Tensor baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  TENON_AUTOCAST(baddbmm, self, a, b, beta, alpha)
  check_rank("baddbmm", "batch1", a, 3);
  check_rank("baddbmm", "batch2", b, 3);
  return product(kBaddbmm, a, b, self, beta.toDouble(), alpha.toDouble());
}

namespace {

/// (…, n) as (rows, n): by sizes, since reshape() could not find the rows by -1 where n is 0.
Tensor rows_of(const Tensor& tensor) { return tensor.dim() == 1 ? tensor.unsqueeze(0) : tensor.flatten(0, -2); }

}  // namespace

Tensor matmul(const Tensor& self, const Tensor& other) {
  TENON_AUTOCAST(matmul, self, other)
  const std::int64_t left = self.dim();
  const std::int64_t right = other.dim();
  if (left == 0 || right == 0) {
    throw Error("both arguments to matmul need to be at least 1D, but they are " + std::to_string(left) + "D and " +
                std::to_string(right) + "D");
  }
  if (left == 1 && right == 1) return dot(self, other);
  if (left == 2 && right == 1) return mv(self, other);
  if (left == 1 && right == 2) return as_owned(mm(self.unsqueeze(0), other).squeeze(0));
  if (left == 2 && right == 2) return mm(self, other);
  if (right <= 2 && left >= 3) {
    // A batch against one matrix is one tall product.
    const Tensor matrix = right == 1 ? other.unsqueeze(1) : other;
    Dims sizes = self.impl().sizes();
    const Tensor tall = rows_of(self);
    if (tall.size(-1) != matrix.size(0))
      throw Error("mat1 and mat2 shapes cannot be multiplied (" + shapes(tall, matrix) + ")");
    sizes[sizes.rank() - 1] = matrix.size(1);
    if (right == 1) sizes.erase(sizes.rank() - 1);
    return product(kMm, tall, matrix, {}, 1, 1, &sizes);
  }
  const Tensor a = left == 1 ? self.unsqueeze(0) : self;
  const Tensor b = right == 1 ? other.unsqueeze(1) : other;
  Dims a_batch(a.sizes().slice(0, static_cast<std::size_t>(a.dim() - 2)));
  Dims b_batch(b.sizes().slice(0, static_cast<std::size_t>(b.dim() - 2)));
  Dims batch = broadcast_sizes(a_batch, b_batch);
  const std::int64_t count = batch.product();
  Dims a_sizes = batch;
  a_sizes.push_back(a.size(-2));
  a_sizes.push_back(a.size(-1));
  Dims b_sizes = batch;
  b_sizes.push_back(b.size(-2));
  b_sizes.push_back(b.size(-1));
  const Tensor x = a.expand(a_sizes).reshape({count, a.size(-2), a.size(-1)});
  const Tensor y = b.expand(b_sizes).reshape({count, b.size(-2), b.size(-1)});
  Dims sizes = batch;
  if (left > 1) sizes.push_back(a.size(-2));
  if (right > 1) sizes.push_back(b.size(-1));
  return as_owned(bmm(x, y).view(sizes));
}

Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  TENON_AUTOCAST(linear, input, weight, bias)
  const bool has_bias = bias && bias->defined();
  const std::int64_t features = weight.dim() == 2 ? weight.size(1) : -1;
  if (input.dim() == 0 || weight.dim() == 0) throw Error("both arguments to linear need to be at least 1D");
  if (features >= 0 && input.size(-1) != features) {
    const Tensor tall = rows_of(input);
    throw Error("mat1 and mat2 shapes cannot be multiplied (" + shapes(tall, weight.t()) + ")");
  }
  if (input.dim() == 2 && has_bias && weight.dim() == 2) return addmm(*bias, input, weight.t());
  if (input.dim() > 2 && weight.dim() == 2) {
    Dims sizes = input.impl().sizes();
    sizes[sizes.rank() - 1] = weight.size(0);
    const Tensor tall = rows_of(input);
    return has_bias ? product(kAddmm, tall, weight.t(), *bias, 1, 1, &sizes)
                    : product(kMm, tall, weight.t(), {}, 1, 1, &sizes);
  }
  const Tensor result = matmul(input, weight.t());
  return has_bias ? result.add(*bias).to(result.scalar_type()) : result;
}
Tensor& linear_out(Tensor& out, const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  TENON_SCOPE(linear, out, input, weight, bias)
  constexpr detail::OutRule kRule = detail::out_rules::kSame;
  if (bias && bias->defined()) detail::check_out_argument(kRule, "linear", *bias);
  const auto function = [&](const Tensor& x, const Tensor& w) { return linear(x, w, bias); };
  return detail::into(kRule, "linear", out, function, input, weight);
}
Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const std::optional<Tensor>& bias) {
  TENON_AUTOCAST(bilinear, a, b, weight, bias)
  if (a.dim() != b.dim())
    throw Error("bilinear(): input dimensions do not match: got " + std::to_string(a.dim()) + " and " +
                std::to_string(b.dim()));
  for (const auto& [input, name, at] : {std::tuple(&a, "input1", 1), std::tuple(&b, "input2", 2)}) {
    if (weight.dim() == 3 && input->dim() > 0 && input->size(-1) == weight.size(at)) continue;
    throw Error(std::string("bilinear(): ") + name + " size does not match weight size: got sizes " +
                to_string(input->sizes()) + " and " + to_string(weight.sizes()));
  }
  // y_o = sum_ij a_i W_oij b_j
  const Tensor x = rows_of(a);
  const Tensor y = rows_of(b);
  const Tensor left = matmul(x, weight.permute({1, 0, 2}).reshape({weight.size(1), weight.size(0) * weight.size(2)}))
                          .view({x.size(0), weight.size(0), weight.size(2)});
  Tensor result = left.mul(y.unsqueeze(1)).sum(-1);
  if (bias && bias->defined()) result = result.add(*bias);
  Dims sizes = a.impl().sizes();
  sizes[sizes.rank() - 1] = weight.size(0);
  return as_owned(result.to(a.scalar_type()).view(sizes));
}

Tensor cross(const Tensor& self, const Tensor& other, std::optional<std::int64_t> dim) {
  TENON_AUTOCAST(cross, self, other, dim)
  if (self.dim() != other.dim()) {
    throw Error("linalg.cross: inputs must have the same number of dimensions, got sizes " + to_string(self.sizes()) +
                " and " + to_string(other.sizes()));
  }
  const Dims sizes = broadcast_sizes(self.impl().sizes(), other.impl().sizes());
  int at = -1;
  if (dim) {
    at = wrap_dim(*dim, sizes.rank());
  } else {
    for (int i = 0; i < sizes.rank() && at < 0; ++i) {
      if (sizes[i] == 3) at = i;
    }
    if (at < 0) throw Error("no dimension of size 3 in input");
  }
  if (self.size(at) != 3 || other.size(at) != 3) {
    throw Error("linalg.cross: inputs dimension " + std::to_string(at) + " must have length 3. Got " +
                std::to_string(self.size(at)) + " and " + std::to_string(other.size(at)));
  }
  const Tensor a = self.expand(sizes);
  const Tensor b = other.expand(sizes);
  return a.roll(-1, at).mul(b.roll(-2, at)).sub(a.roll(-2, at).mul(b.roll(-1, at)));
}

Tensor Tensor::matmul(const Tensor& other) const { return tenon::matmul(*this, other); }
Tensor Tensor::mm(const Tensor& other) const { return tenon::mm(*this, other); }
Tensor Tensor::bmm(const Tensor& other) const { return tenon::bmm(*this, other); }
Tensor Tensor::mv(const Tensor& other) const { return tenon::mv(*this, other); }
Tensor Tensor::dot(const Tensor& other) const { return tenon::dot(*this, other); }
Tensor Tensor::outer(const Tensor& other) const { return tenon::outer(*this, other); }
Tensor Tensor::addmm(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) const {
  return tenon::addmm(*this, a, b, beta, alpha);
}
Tensor& Tensor::addmm_(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) const {
  TENON_SCOPE(addmm_, *this, a, b, beta, alpha)
  return copy_(tenon::addmm(*this, a, b, beta, alpha));
}
Tensor Tensor::baddbmm(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) const {
  return tenon::baddbmm(*this, a, b, beta, alpha);
}

}  // namespace tenon
