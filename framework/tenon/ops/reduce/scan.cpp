// Scans along one dimension.
#include <tenon/kernel/attributes/reduction.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/picked.h>
#include <tenon/ops/reduce/scan.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/sum_dtype.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

namespace tenon {

using namespace ops;

namespace {

/// The running extreme and its last place.
std::tuple<Tensor, Tensor> running(OperatorId op, const char* name, const Tensor& self, std::int64_t dim) {
  const DimAttributes attributes{wrap_dim(dim, self.impl().rank())};
  Recording recording = record_picked(name, self, attributes.dim, true);
  Tensor values = allocate_like(self, self.impl().sizes(), self.scalar_type());
  Tensor places = allocate_like(self, self.impl().sizes(), Dtype::kInt64);
  run(op, ops::state_of(self), {view_of(values), view_of(places)}, {view_of(self)}, &attributes);
  if (recording) {
    recording.save(0, places);
    recording.output(values);
  }
  return {values, places};
}

/// The area under a curve of no points.
Tensor no_area(const Tensor& y, int at) {
  Dims sizes = y.impl().sizes();
  sizes.erase(at);
  return zeros(sizes, y.options());
}

Tensor sums_of_neighbours(const Tensor& y, int at) { return y.slice(at, 1).add(y.slice(at, 0, -1)); }

void check_curve(const char* name, const Tensor& y) {
  if (y.scalar_type() == kBool)
    throw Error(fmt::format("{}: received a bool input for `y`, but bool is not supported", name));
}

/// Widths of the intervals between points `x`, with as many dims as `y`.
Tensor widths(const char* name, const Tensor& y, const Tensor& x, int at) {
  if (x.scalar_type() == kBool)
    throw Error(fmt::format("{}: received a bool input for `x`, but bool is not supported", name));
  Tensor points = x;
  if (x.dim() == 1) {
    if (x.size(0) != y.size(at)) {
      throw Error(fmt::format("{}: There must be one `x` value for each sample point, but got {} values for {} points",
                              name, x.size(0), y.size(at)));
    }
    Dims line = Dims::filled(y.impl().rank(), 1);
    line[at] = x.size(0);
    points = x.view(line);
  }
  while (points.dim() < y.dim()) points = points.unsqueeze(0);
  return points.slice(at, 1).sub(points.slice(at, 0, -1));
}

}  // namespace

Tensor Tensor::cumsum(std::int64_t dim, std::optional<Dtype> dtype) const {
  TENON_AUTOCAST_METHOD(cumsum, *this, dim, dtype)
  const Tensor input = to(sum_dtype(*this, dtype));
  const int at = wrap_dim(dim, impl().rank());
  Recording recording = record<0>("CumsumBackward0", {&input}, [at](Backward& b) {
    b.set(0, b.grad().numel() <= 1 ? b.grad() : b.grad().flip(at).cumsum(at).flip(at));
  });
  Tensor result = allocate_like(input, input.impl().sizes(), input.scalar_type());
  const DimAttributes attributes{at};
  run(TENON_OP("cumsum"), ops::state_of(input), {view_of(result)}, {view_of(input)}, &attributes);
  recording.output(result);
  return result;
}

Tensor Tensor::cumprod(std::int64_t dim, std::optional<Dtype> dtype) const {
  TENON_AUTOCAST_METHOD(cumprod, *this, dim, dtype)
  const Tensor input = to(sum_dtype(*this, dtype));
  const int at = wrap_dim(dim, impl().rank());
  Recording recording = record<2>("CumprodBackward0", {&input}, [at](Backward& b) {
    const Tensor x = b.saved(0);
    if (x.dim() == 0 || x.numel() == 0) {
      b.set(0, b.grad());
      return;
    }
    const Tensor zeros = x.eq(0);
    if (!has_values(x) || !zeros.any().item<bool>()) {
      const Tensor y = b.saved(1);
      b.set(0, b.grad().mul(y).flip(at).cumsum(at).flip(at).div(x));
      return;
    }
    // With zeros: d y_k / d x_i is the product of the others up to k, built column by column.
    const std::int64_t length = x.size(at);
    std::vector<Tensor> columns;
    for (std::int64_t i = 0; i < length; ++i) {
      Tensor prefix = i == 0 ? x.narrow(at, 0, 1).mul(0).add(1) : x.narrow(at, 0, i).cumprod(at).narrow(at, i - 1, 1);
      Tensor terms = prefix;
      if (i + 1 < length) terms = cat({prefix, prefix.mul(x.narrow(at, i + 1, length - i - 1).cumprod(at))}, at);
      columns.push_back(b.grad().narrow(at, i, length - i).mul(terms).sum(at, true));
    }
    b.set(0, cat(columns, at));
  });
  if (recording) recording.save(0, input);
  Tensor result = allocate_like(input, input.impl().sizes(), input.scalar_type());
  const DimAttributes attributes{at};
  run(TENON_OP("cumprod"), ops::state_of(input), {view_of(result)}, {view_of(input)}, &attributes);
  if (recording) {
    recording.output(result);
    recording.save_output(1, result);
  }
  return result;
}

namespace {

void check_dtype_inplace(const Tensor& self, std::optional<Dtype> dtype) {
  if (!dtype || *dtype == self.scalar_type()) return;
  throw Error(std::string("Bad in-place call: input tensor dtype ") + self.dtype().name() +
              " and output tensor dtype " + TypeMeta(*dtype).name() + " should match");
}

}  // namespace

Tensor& Tensor::cumsum_(std::int64_t dim, std::optional<Dtype> dtype) const {
  TENON_SCOPE(cumsum_, *this, dim, dtype)
  check_dtype_inplace(*this, dtype);
  return overwrite("cumsum_", *this, cumsum(dim, dtype.value_or(scalar_type())));
}
Tensor& Tensor::cumprod_(std::int64_t dim, std::optional<Dtype> dtype) const {
  TENON_SCOPE(cumprod_, *this, dim, dtype)
  check_dtype_inplace(*this, dtype);
  return overwrite("cumprod_", *this, before_write(*this).cumprod(dim, dtype.value_or(scalar_type())));
}

std::tuple<Tensor, Tensor> Tensor::cummax(std::int64_t dim) const {
  TENON_SCOPE(cummax, *this, dim)
  return running(TENON_OP("cummax"), "CummaxBackward0", *this, dim);
}
std::tuple<Tensor, Tensor> Tensor::cummin(std::int64_t dim) const {
  TENON_SCOPE(cummin, *this, dim)
  return running(TENON_OP("cummin"), "CumminBackward0", *this, dim);
}

Tensor Tensor::logcumsumexp(std::int64_t dim) const {
  TENON_SCOPE(logcumsumexp, *this, dim)
  check_floating("logcumsumexp", *this);
  const int at = wrap_dim(dim, impl().rank());
  // d y_k / d x_i = exp(x_i - y_k): sums from the end, of the positive and of the negative gradients, as logarithms.
  Recording recording = record<2>("LogcumsumexpBackward0", {this}, [at](Backward& b) {
    const Tensor x = b.saved(0), y = b.saved(1), gradient = b.grad();
    const auto part = [&](const Tensor& magnitude) {
      const Tensor is_none = magnitude.le(0);
      const Tensor term = magnitude.masked_fill(is_none, 1).log().sub(y).masked_fill(is_none, -INFINITY);
      return term.flip(at).logcumsumexp(at).flip(at).add(x).exp();
    };
    b.set(0, x.dim() == 0 || x.numel() == 0 ? gradient : part(gradient).sub(part(gradient.neg())));
  });
  if (recording) recording.save(0, *this);
  Tensor result = allocate_like(*this, impl().sizes(), scalar_type());
  const DimAttributes attributes{at};
  run(TENON_OP("logcumsumexp"), ops::state_of(*this), {view_of(result)}, {view_of(*this)}, &attributes);
  if (recording) {
    recording.output(result);
    recording.save_output(1, result);
  }
  return result;
}

Tensor Tensor::diff(std::int64_t n, std::int64_t dim, const std::optional<Tensor>& prepend,
                    const std::optional<Tensor>& append) const {
  TENON_SCOPE(diff, *this, n, dim, prepend, append)
  if (this->dim() == 0) throw Error("diff expects input to be at least one-dimensional");
  if (n < 0) throw Error(fmt::format("order must be non-negative but got {}", n));
  const int at = wrap_dim(dim, impl().rank());
  std::vector<Tensor> parts{*this};
  if (prepend && prepend->defined()) parts.insert(parts.begin(), *prepend);
  if (append && append->defined()) parts.push_back(*append);
  for (const Tensor& part : parts) {
    if (part.dim() != this->dim()) throw Error("diff expects prepend or append to be the same dimension as input");
    for (int i = 0; i < impl().rank(); ++i) {
      if (i == at || part.size(i) == size(i)) continue;
      throw Error(
          fmt::format("diff expects the shape of tensor to prepend or append to match that of input except along the "
                      "differencing dimension; input.size({}) = {}, but got tensor.size({}) = {}",
                      i, size(i), i, part.size(i)));
    }
  }
  if (n == 0) return zeros_like(*this).add(*this);
  Tensor result = parts.size() == 1 ? *this : cat(parts, at);
  n = std::min(n, result.size(at));  // then nothing is left
  for (std::int64_t i = 0; i < n; ++i) {
    const Tensor later = result.slice(at, 1),
                 earlier = result.slice(at, 0, std::max<std::int64_t>(result.size(at) - 1, 0));
    result = result.scalar_type() == kBool ? later.logical_xor(earlier) : later.sub(earlier);
  }
  return result;
}

Tensor trapezoid(const Tensor& y, const Tensor& x, std::int64_t dim) {
  TENON_SCOPE(trapezoid, y, x, dim)
  check_curve("trapezoid", y);
  const int at = wrap_dim(dim, y.impl().rank());
  if (y.size(at) == 0) return no_area(y, at);
  return widths("trapezoid", y, x, at).mul(sums_of_neighbours(y, at)).sum(at).div(2);
}
Tensor trapezoid(const Tensor& y, const Scalar& dx, std::int64_t dim) {
  TENON_SCOPE(trapezoid, y, dx, dim)
  check_curve("trapezoid", y);
  const int at = wrap_dim(dim, y.impl().rank());
  if (y.size(at) == 0) return no_area(y, at);
  // All points but half of the ends, so that bytes are added up as wider integers.
  return y.sum(at).sub(y.select(at, 0).add(y.select(at, -1)).mul(0.5)).mul(dx);
}
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, std::int64_t dim) {
  TENON_SCOPE(cumulative_trapezoid, y, x, dim)
  check_curve("cumulative_trapezoid", y);
  const int at = wrap_dim(dim, y.impl().rank());
  return widths("cumulative_trapezoid", y, x, at).mul(sums_of_neighbours(y, at)).cumsum(at).div(2);
}
Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx, std::int64_t dim) {
  TENON_SCOPE(cumulative_trapezoid, y, dx, dim)
  check_curve("cumulative_trapezoid", y);
  const int at = wrap_dim(dim, y.impl().rank());
  return sums_of_neighbours(y, at).mul(dx).cumsum(at).div(2);
}

}  // namespace tenon
