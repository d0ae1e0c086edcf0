// Reductions, each with its gradient.
// Long: the functions are many and small, and share what reads masks of dimensions.
#include <tenon/kernel/attributes/reduction.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/picked.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/reduce/row_norm.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/sum_dtype.h>
#include <tenon/ops/support/support.h>

#include <cmath>
#include <string>

namespace tenon {

using namespace ops;

namespace {

/// `kept`, a kernel's output with reduced dims of size 1, without these dims unless `keepdim`; it has no history yet.
Tensor squeezed(const Tensor& kept, std::uint32_t mask, bool keepdim) {
  if (keepdim || mask == 0) return kept;
  kept.impl().set_contiguous(reduced_sizes(kept.impl().sizes(), mask, false));
  return kept;
}

Tensor restore(const Tensor& tensor, std::uint32_t mask, int rank, bool keepdim) {
  return keepdim ? tensor : unsqueeze_mask(tensor, mask, rank);
}

Tensor reduce_raw(OperatorId op, const Tensor& self, std::uint32_t mask, Dtype dtype,
                  const void* attributes = nullptr) {
  Tensor kept = allocate_like(self, reduced_sizes(self.impl().sizes(), mask, true), dtype);
  run(op, ops::state_of(self), {view_of(kept)}, {view_of(self)}, attributes);
  return kept;
}

std::int64_t reduced_count(const Tensor& self, std::uint32_t mask) {
  std::int64_t count = 1;
  for (int i = 0; i < self.impl().rank(); ++i) {
    if (mask >> i & 1) count *= self.impl().sizes()[i];
  }
  return count;
}

Tensor sum_impl(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<Dtype> dtype) {
  const Dtype wanted = sum_dtype(self, dtype);
  const int rank = self.impl().rank();
  const std::uint32_t mask = dim_mask(dim, rank);
  const Tensor input =
      self.scalar_type() == wanted || (!self.is_floating_point() && wanted == Dtype::kInt64) ? self : self.to(wanted);
  const Dims sizes = self.impl().sizes();
  const Recording recording = record<0>("SumBackward0", {&input}, [sizes, mask, rank, keepdim](Backward& b) {
    b.set(0, restore(b.grad(), mask, rank, keepdim).expand(sizes));
  });
  Tensor result = squeezed(reduce_raw(TENON_OP("sum"), input, mask, wanted), mask, keepdim);
  Recording(recording).output(result);
  return result;
}

Tensor mean_impl(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<Dtype> dtype) {
  const Dtype wanted = dtype.value_or(self.scalar_type());
  if (!is_floating_point(wanted)) {
    throw Error(
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: " +
        std::string(toString(self.scalar_type())));
  }
  const Tensor input = self.to(wanted);
  const int rank = self.impl().rank();
  const std::uint32_t mask = dim_mask(dim, rank);
  const Dims sizes = self.impl().sizes();
  const std::int64_t count = reduced_count(self, mask);
  Recording recording = record<0>("MeanBackward0", {&input}, [sizes, mask, rank, keepdim, count](Backward& b) {
    b.set(0, restore(b.grad(), mask, rank, keepdim).expand(sizes).div(Scalar(count)));
  });
  Tensor result = squeezed(reduce_raw(TENON_OP("mean"), input, mask, wanted), mask, keepdim);
  recording.output(result);
  return result;
}

std::uint32_t one(const Tensor& self, std::int64_t dim) {
  const int at = wrap_dim(dim, self.impl().rank());
  return self.impl().rank() == 0 ? 0 : 1u << at;
}
std::uint32_t every(const Tensor& self) { return dim_mask(std::nullopt, self.impl().rank()); }

[[noreturn]] void no_such_dim(const std::string& op, int dim) {
  throw IndexError(op + "(): Expected reduction dim " + std::to_string(dim) + " to have non-zero size.");
}

/// amax, amin and the full max and min: equal winners share the gradient, of a NaN those that are NaN, if `shares_nan`.
Tensor extreme(OperatorId op, const char* public_name, const char* name, const Tensor& self, std::uint32_t mask,
               bool keepdim, bool shares_nan = false) {
  if (reduced_count(self, mask) == 0) {
    for (int i = 0; i < self.impl().rank() && mask != every(self); ++i) {
      if ((mask >> i & 1) != 0 && self.size(i) == 0) no_such_dim(public_name, i);
    }
    throw Error(std::string(public_name) +
                "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument. (input has shape " +
                to_string(self.sizes()) + ")");
  }
  const int rank = self.impl().rank();
  Recording recording = record<2>(name, {&self}, [mask, rank, keepdim, shares_nan](Backward& b) {
    const Tensor x = b.saved(0), extreme = restore(b.saved(1), mask, rank, keepdim);
    Tensor chosen = x.eq(extreme);
    if (shares_nan) chosen = chosen.logical_or(x.isnan().logical_and(extreme.isnan()));
    const Tensor winners = chosen.to(b.grad().scalar_type());
    Tensor count = winners;
    for (int i = 0; i < rank; ++i) {
      if (mask >> i & 1) count = count.sum(i, true);
    }
    b.set(0, winners.mul(restore(b.grad(), mask, rank, keepdim).div(count)));
  });
  if (recording) recording.save(0, self);
  Tensor result = squeezed(reduce_raw(op, self, mask, self.scalar_type()), mask, keepdim);
  if (recording) {
    recording.output(result);
    recording.save_output(1, result);
  }
  return result;
}

std::tuple<Tensor, Tensor> extreme_dim(OperatorId op, const char* name, const Tensor& self, std::int64_t dim,
                                       bool keepdim) {
  const int rank = self.impl().rank();
  const int at = wrap_dim(dim, rank);
  if (rank > 0 && self.size(at) == 0) {
    const std::string kernel(name_of(op));  // max_dim
    no_such_dim(kernel.substr(0, kernel.find("_dim")), at);
  }
  const std::uint32_t mask = rank == 0 ? 0 : 1u << at;
  Recording recording = record_picked(name, self, at, keepdim || rank == 0);
  Tensor values = allocate_like(self, reduced_sizes(self.impl().sizes(), mask, true), self.scalar_type());
  Tensor indices = allocate_like(self, values.impl().sizes(), Dtype::kInt64);
  const DimAttributes attributes{at};
  run(op, ops::state_of(self), {view_of(values), view_of(indices)}, {view_of(self)}, &attributes);
  values = squeezed(values, mask, keepdim);
  indices = squeezed(indices, mask, keepdim);
  if (recording) {
    recording.save(0, indices);
    recording.output(values);
  }
  return {values, indices};
}

Tensor argument(OperatorId op, const Tensor& self, std::optional<std::int64_t> dim, bool keepdim) {
  NoGradGuard no_grad;
  if (self.numel() == 0 && !dim)
    throw IndexError(std::string(name_of(op)) + "(): Expected reduction dim to be specified for input.numel() == 0.");
  const Tensor input = dim ? self : self.reshape({-1});
  const int rank = input.impl().rank();
  const int at = dim ? wrap_dim(*dim, rank) : 0;
  if (rank > 0 && input.size(at) == 0) no_such_dim(std::string(name_of(op)), at);
  const std::uint32_t mask = rank == 0 ? 0 : 1u << at;
  const DimAttributes attributes{at};
  Tensor kept = reduce_raw(op, input, mask, Dtype::kInt64, &attributes);
  if (dim) return squeezed(kept, mask, keepdim);
  return keepdim ? kept.view(Dims::filled(self.impl().rank(), 1)) : squeezed(kept, mask, false);
}

Tensor truth(OperatorId op, const Tensor& self, std::uint32_t mask, bool keepdim) {
  NoGradGuard no_grad;
  // PyTorch's legacy: a uint8 input gives a uint8 answer.
  Tensor result = squeezed(reduce_raw(op, self, mask, Dtype::kBool), mask, keepdim);
  return self.scalar_type() == Dtype::kUInt8 ? result.to(Dtype::kUInt8) : result;
}

}  // namespace

Tensor Tensor::sum(std::optional<Dtype> dtype) const {
  TENON_AUTOCAST_METHOD(sum, *this, dtype)
  return sum_impl(*this, std::nullopt, false, dtype);
}
Tensor Tensor::sum(OptionalIntArrayRef dim, bool keepdim, std::optional<Dtype> dtype) const {
  TENON_AUTOCAST_METHOD(sum, *this, dim, keepdim, dtype)
  return sum_impl(*this, dim, keepdim, dtype);
}
Tensor Tensor::mean(std::optional<Dtype> dtype) const {
  TENON_SCOPE(mean, *this, dtype)
  return mean_impl(*this, std::nullopt, false, dtype);
}
Tensor Tensor::mean(OptionalIntArrayRef dim, bool keepdim, std::optional<Dtype> dtype) const {
  TENON_SCOPE(mean, *this, dim, keepdim, dtype)
  return mean_impl(*this, dim, keepdim, dtype);
}

Tensor Tensor::sum_to_size(IntArrayRef sizes) const {
  TENON_SCOPE(sum_to_size, *this, sizes)
  const Dims wanted(sizes);
  const TensorImpl& self = impl();
  if (self.sizes() == wanted) return *this;
  if (!is_expandable_to(wanted, self.sizes())) {
    throw Error("size {" + to_string(wanted) + "} is not expandable to size {" + to_string(self.sizes()) + "}.");
  }
  std::vector<std::int64_t> dims;
  const int added = self.rank() - wanted.rank();
  for (int i = 0; i < self.rank(); ++i) {
    if (i < added || (wanted[i - added] == 1 && self.sizes()[i] != 1)) dims.push_back(i);
  }
  Tensor result = dims.empty() ? *this : sum(IntArrayRef(dims), true);
  return added > 0 ? result.view(wanted) : result;
}

namespace {

/// The gradient times the product of all other elements, out of prefix and suffix products: correct for zeros, too.
Tensor prod_gradient(const Tensor& gradient, const Tensor& input, int at) {
  const std::int64_t length = input.size(at);
  if (length == 0) return input.new_zeros(input.sizes());
  std::vector<std::int64_t> ones_sizes = input.sizes().vec();
  ones_sizes[static_cast<std::size_t>(at)] = 1;
  const Tensor ones = input.new_ones(ones_sizes);
  const Tensor before = cat({ones, input.narrow(at, 0, length - 1)}, at).cumprod(at);
  const Tensor after = cat({ones, input.narrow(at, 1, length - 1).flip(at)}, at).cumprod(at).flip(at);
  return gradient.mul(before.mul(after));
}

}  // namespace

Tensor Tensor::prod(std::int64_t dim, bool keepdim, std::optional<Dtype> dtype) const {
  TENON_AUTOCAST_METHOD(prod, *this, dim, keepdim, dtype)
  const Dtype wanted = sum_dtype(*this, dtype);
  const Tensor input = to(wanted);
  const int rank = impl().rank();
  const int at = wrap_dim(dim, rank);
  const std::uint32_t mask = rank == 0 ? 0 : 1u << at;
  Recording recording = record<1>("ProdBackward1", {&input}, [at, rank, mask, keepdim](Backward& b) {
    if (rank == 0) {
      b.set(0, b.grad());
    } else {
      b.set(0, prod_gradient(restore(b.grad(), mask, rank, keepdim), b.saved(0), at));
    }
  });
  if (recording) recording.save(0, input);
  Tensor result = squeezed(reduce_raw(TENON_OP("prod"), input, mask, wanted), mask, keepdim);
  recording.output(result);
  return result;
}
Tensor Tensor::prod(std::optional<Dtype> dtype) const {
  TENON_AUTOCAST_METHOD(prod, *this, dtype)
  return reshape({-1}).prod(0, false, dtype);
}

Tensor Tensor::amax(IntArrayRef dim, bool keepdim) const {
  TENON_SCOPE(amax, *this, dim, keepdim)
  return extreme(TENON_OP("amax"), "amax", "AmaxBackward0", *this, dim_mask(dim, impl().rank()), keepdim);
}
Tensor Tensor::amin(IntArrayRef dim, bool keepdim) const {
  TENON_SCOPE(amin, *this, dim, keepdim)
  return extreme(TENON_OP("amin"), "amin", "AminBackward0", *this, dim_mask(dim, impl().rank()), keepdim);
}
Tensor Tensor::max() const {
  TENON_SCOPE(max, *this)
  return extreme(TENON_OP("amax"), "max", "MaxBackward1", *this, every(*this), false, true);
}
Tensor Tensor::min() const {
  TENON_SCOPE(min, *this)
  return extreme(TENON_OP("amin"), "min", "MinBackward1", *this, every(*this), false, true);
}
Tensor Tensor::max(const Tensor& other) const {
  TENON_SCOPE(max, *this, other)
  return maximum(other);
}
Tensor Tensor::min(const Tensor& other) const {
  TENON_SCOPE(min, *this, other)
  return minimum(other);
}
std::tuple<Tensor, Tensor> Tensor::max(std::int64_t dim, bool keepdim) const {
  TENON_SCOPE(max, *this, dim, keepdim)
  return extreme_dim(TENON_OP("max_dim"), "MaxBackward0", *this, dim, keepdim);
}
std::tuple<Tensor, Tensor> Tensor::min(std::int64_t dim, bool keepdim) const {
  TENON_SCOPE(min, *this, dim, keepdim)
  return extreme_dim(TENON_OP("min_dim"), "MinBackward0", *this, dim, keepdim);
}
Tensor Tensor::argmax(std::optional<std::int64_t> dim, bool keepdim) const {
  TENON_SCOPE(argmax, *this, dim, keepdim)
  return argument(TENON_OP("argmax"), *this, dim, keepdim);
}
Tensor Tensor::argmin(std::optional<std::int64_t> dim, bool keepdim) const {
  TENON_SCOPE(argmin, *this, dim, keepdim)
  return argument(TENON_OP("argmin"), *this, dim, keepdim);
}
Tensor Tensor::any() const {
  TENON_SCOPE(any, *this)
  return truth(TENON_OP("any"), *this, every(*this), false);
}
Tensor Tensor::all() const {
  TENON_SCOPE(all, *this)
  return truth(TENON_OP("all"), *this, every(*this), false);
}
Tensor Tensor::any(std::int64_t dim, bool keepdim) const {
  TENON_SCOPE(any, *this, dim, keepdim)
  return truth(TENON_OP("any"), *this, one(*this, dim), keepdim);
}
Tensor Tensor::all(std::int64_t dim, bool keepdim) const {
  TENON_SCOPE(all, *this, dim, keepdim)
  return truth(TENON_OP("all"), *this, one(*this, dim), keepdim);
}

namespace {

/// The gradient of a norm by PyTorch's formula, for 0 < |p| < inf but p = 1. Where the slope is infinite (an element or
/// the norm itself is 0) it is 0; with `smooth` so is its derivative, which else is NaN there.
Tensor power_norm_gradient(const Tensor& x, const Tensor& length, const Tensor& gradient, double p, bool smooth) {
  const Tensor zero = x.eq(0), none = length.eq(0);
  const auto apart = [smooth](const Tensor& tensor, const Tensor& where) {
    return smooth ? tensor.masked_fill(where, 1) : tensor;
  };
  const Tensor whole = apart(length, none);
  if (p == 2) return x.div(whole).masked_fill(none, 0).mul(gradient);
  const Tensor sizes = apart(x.abs(), zero);
  if (p < 1) return x.sign().mul(sizes.pow(p - 1).masked_fill(zero, 0)).mul(gradient.mul(whole.pow(1 - p)));
  const auto steep = [&] { return smooth ? sizes.pow(p - 2).masked_fill(zero, 0) : sizes.pow(p - 2); };
  const Tensor scaled = p < 2 ? x.sign().mul(sizes.pow(p - 1)) : x.mul(steep());
  return scaled.mul(gradient.div(whole.pow(p - 1)).masked_fill(none, 0));
}

Tensor norm_impl(const Tensor& self, double p, std::uint32_t mask, bool keepdim, bool smooth = false) {
  if (!self.is_floating_point()) {
    throw Error(std::string("norm(): input dtype should be either floating point or complex. Got ") +
                toString(self.scalar_type()) + " instead.");
  }
  const int rank = self.impl().rank();
  Recording recording = record<2>("NormBackward0", {&self}, [p, mask, rank, keepdim, smooth](Backward& b) {
    const Tensor x = b.saved(0);
    const Tensor gradient = restore(b.grad(), mask, rank, keepdim);
    const Tensor length = restore(b.saved(1), mask, rank, keepdim);
    if (p == 0) {
      b.set(0, x.new_zeros(x.sizes()));
    } else if (p == 1) {
      b.set(0, gradient.mul(x.sign()));
    } else if (std::isinf(p)) {
      const Tensor winners = x.abs().eq(length).logical_or(x.isnan()).to(x.scalar_type());
      Tensor count = winners;
      for (int i = 0; i < rank; ++i) {
        if (mask >> i & 1) count = count.sum(i, true);
      }
      b.set(0, x.sign().mul(winners).mul(gradient.div(count)));
    } else {
      b.set(0, power_norm_gradient(x, length, gradient, p, smooth));
    }
  });
  if (recording) recording.save(0, self);
  const NormAttributes attributes{p};
  Tensor result = squeezed(reduce_raw(TENON_OP("norm"), self, mask, self.scalar_type(), &attributes), mask, keepdim);
  if (recording) {
    recording.output(result);
    recording.save_output(1, result);
  }
  return result;
}

}  // namespace

Tensor ops::row_norm(const Tensor& self, double p) {
  TENON_SCOPE(row_norm, self, p)
  return norm_impl(self, p, dim_mask(OptionalIntArrayRef(std::int64_t{-1}), self.impl().rank()), false, true);
}
Tensor Tensor::norm(const Scalar& p) const {
  TENON_AUTOCAST_METHOD(norm, *this, p)
  return norm_impl(*this, p.toDouble(), every(*this), false);
}
Tensor Tensor::norm(const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim) const {
  TENON_AUTOCAST_METHOD(norm, *this, p, dim, keepdim)
  return norm_impl(*this, p ? p->toDouble() : 2.0, dim_mask(dim, impl().rank()), keepdim);
}

namespace {

Tensor var_impl(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim, bool root) {
  if (!self.is_floating_point()) {
    throw Error(std::string("std and var only support floating point and complex dtypes, got ") +
                toString(self.scalar_type()));
  }
  const int rank = self.impl().rank();
  const std::uint32_t mask = dim_mask(dim, rank);
  const double correction = unbiased ? 1 : 0;
  const std::int64_t count = reduced_count(self, mask);
  Recording recording = record<2>(root ? "StdBackward0" : "VarBackward0", {&self}, [=](Backward& b) {
    const Tensor x = b.saved(0);
    std::vector<std::int64_t> dims;
    for (int i = 0; i < rank; ++i) {
      if (mask >> i & 1) dims.push_back(i);
    }
    Tensor gradient = b.grad();
    if (root) gradient = gradient.div(b.saved(1).mul(2)).masked_fill(b.saved(1).eq(0), 0);
    gradient = restore(gradient, mask, rank, keepdim);
    const double rest = static_cast<double>(count) - correction;
    const Tensor centered = x.sub(rank == 0 ? x : x.mean(IntArrayRef(dims), true));
    b.set(0, centered.mul(gradient).mul(2 / rest));
  });
  if (recording) recording.save(0, self);
  const VarAttributes attributes{correction};
  Tensor result = squeezed(
      reduce_raw(root ? TENON_OP("std") : TENON_OP("var"), self, mask, self.scalar_type(), &attributes), mask, keepdim);
  if (recording) {
    recording.output(result);
    if (root) recording.save_output(1, result);
  }
  return result;
}

}  // namespace

Tensor Tensor::var(bool unbiased) const {
  TENON_SCOPE(var, *this, unbiased)
  return var_impl(*this, std::nullopt, unbiased, false, false);
}
Tensor Tensor::var(OptionalIntArrayRef dim, bool unbiased, bool keepdim) const {
  TENON_SCOPE(var, *this, dim, unbiased, keepdim)
  return var_impl(*this, dim, unbiased, keepdim, false);
}
Tensor Tensor::var(int dim) const {
  TENON_SCOPE(var, *this, dim)
  return var_impl(*this, OptionalIntArrayRef(std::int64_t{dim}), true, false, false);
}
Tensor Tensor::std(bool unbiased) const {
  TENON_SCOPE(std, *this, unbiased)
  return var_impl(*this, std::nullopt, unbiased, false, true);
}
Tensor Tensor::std(OptionalIntArrayRef dim, bool unbiased, bool keepdim) const {
  TENON_SCOPE(std, *this, dim, unbiased, keepdim)
  return var_impl(*this, dim, unbiased, keepdim, true);
}
Tensor Tensor::std(int dim) const {
  TENON_SCOPE(std, *this, dim)
  const std::int64_t wide = dim;
  return var_impl(*this, OptionalIntArrayRef(wide), true, false, true);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim) {
  TENON_SCOPE(var_mean, self, dim, unbiased, keepdim)
  return {self.var(dim, unbiased, keepdim), self.mean(dim, keepdim)};
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased) {
  TENON_SCOPE(var_mean, self, unbiased)
  return {self.var(unbiased), self.mean()};
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int dim) {
  TENON_SCOPE(var_mean, self, dim)
  const std::int64_t wide = dim;
  return var_mean(self, OptionalIntArrayRef(wide), true);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim) {
  TENON_SCOPE(std_mean, self, dim, unbiased, keepdim)
  return {self.std(dim, unbiased, keepdim), self.mean(dim, keepdim)};
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased) {
  TENON_SCOPE(std_mean, self, unbiased)
  return {self.std(unbiased), self.mean()};
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int dim) {
  TENON_SCOPE(std_mean, self, dim)
  const std::int64_t wide = dim;
  return std_mean(self, OptionalIntArrayRef(wide), true);
}

Tensor Tensor::count_nonzero() const {
  TENON_SCOPE(count_nonzero, *this)
  return ne(0).sum();
}

}  // namespace tenon
