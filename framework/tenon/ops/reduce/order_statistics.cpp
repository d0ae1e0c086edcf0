// Statistics of the order along a dim: a sort without a graph finds the positions, gather() reads the values there and
// has the gradient.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/order_statistics.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

#include <limits>

namespace tenon {

using namespace ops;

namespace {

using Picked = std::tuple<Tensor, Tensor>;

/// `find` gets a dim's values in order and their places, and gives the places of the chosen, with the dim kept as 1, in
/// a tensor of their own.
template <class Find>
Picked pick(const char* name, const Tensor& self, std::int64_t dim, bool keepdim, Find find) {
  const int at = wrap_dim(dim, self.impl().rank());
  if (self.scalar_type() == kBool) throw Error(fmt::format("\"{}\" not implemented for 'Bool'", name));
  if (self.dim() == 0) return {self.clone(), zeros({}, self.options().dtype(kInt64))};
  if (self.size(at) == 0) {
    throw IndexError(fmt::format("{}(): Expected reduction dim {} to have non-zero size.", name, at));
  }
  Tensor places;
  {
    NoGradGuard no_grad;
    const auto [sorted, order] = self.sort(at);
    places = find(sorted, order, at);
  }
  const Tensor values = self.gather(at, places);
  if (keepdim) return {values, places};
  return {as_owned(values.squeeze(at)), places.squeeze(at)};
}

Picked median_of(const char* name, const Tensor& self, std::int64_t dim, bool keepdim, bool ignore_nan) {
  return pick(name, self, dim, keepdim, [&](const Tensor& sorted, const Tensor& order, int at) {
    const std::int64_t length = sorted.size(at);
    const Tensor missing = sorted.ne(sorted).sum(at, true);  // NaN stands last
    Tensor rank;
    if (ignore_nan) {
      rank = missing.neg().add(length - 1).clamp_min(0).div(2, "floor");
    } else {
      rank = where(missing.gt(0), missing.neg().add(length), (length - 1) / 2);
    }
    return order.gather(at, rank.to(kInt64));
  });
}

/// Of all elements; those that equal the median share its gradient.
Tensor median_of_all(const char* name, const char* node, const Tensor& self, bool ignore_nan) {
  if (self.numel() == 0) {
    return full({}, std::numeric_limits<double>::quiet_NaN(), TensorOptions(self.device())).to(self.scalar_type());
  }
  Recording recording = record<2>(node, {&self}, [](Backward& b) {
    const Tensor x = b.saved(0), chosen = b.saved(1);
    const Tensor equals = x.eq(chosen).logical_or(x.ne(x).logical_and(chosen.ne(chosen))).to(b.grad().scalar_type());
    b.set(0, equals.mul(b.grad().div(equals.sum())));
  });
  if (recording) recording.save(0, self);
  Tensor result;
  {
    NoGradGuard no_grad;
    result = std::get<0>(median_of(name, self.reshape({-1}), 0, false, ignore_nan));
  }
  if (recording) {
    recording.output(result);
    recording.save_output(1, result);
  }
  return result;
}

void check_quantile(const char* name, const Tensor& self, const Tensor& q, std::string_view interpolation) {
  const auto fail = [&](const std::string& what) { throw Error(fmt::format("{}() {}", name, what)); };
  if (self.numel() == 0) fail("input tensor must be non-empty");
  if (q.dim() > 1) fail("q must be a scalar or 1D tensor");
  if (self.scalar_type() != kFloat32 && self.scalar_type() != kFloat64) {
    fail("input tensor must be either float or double dtype");
  }
  if (self.scalar_type() != q.scalar_type()) fail("q tensor must be same dtype as the input tensor");
  check_same_device(name, {&self, &q});
  bool known = false;
  for (const char* one : {"linear", "lower", "higher", "midpoint", "nearest"}) known = known || interpolation == one;
  if (!known) {
    fail(fmt::format("interpolation must be one of linear, lower, higher, midpoint or nearest, but got {}",
                     interpolation));
  }
  if (q.numel() > 0 && has_values(q) && !q.ge(0).logical_and(q.le(1)).all().item<bool>())
    fail("q values must be in the range [0, 1]");
}

/// The quantiles as a view of a temporary; quantile_of() makes it a tensor in its own right.
Tensor quantile_view(const Tensor& self, const Tensor& q, std::optional<std::int64_t> dim, bool keepdim,
                     std::string_view interpolation, bool ignore_nan) {
  const int at = dim ? wrap_dim(*dim, self.impl().rank()) : 0;
  Tensor line = dim && self.dim() > 0 ? self.movedim(at, -1) : self.reshape({-1});
  const std::int64_t last = line.size(-1) - 1;
  const Tensor sorted = std::get<0>(line.sort(-1));
  // Ranks of (…, q). In float64, as in PyTorch: a tenth in float32 is more than a tenth, and so is its rank.
  Dims rank_sizes = sorted.impl().sizes();
  rank_sizes.back() = q.numel();
  const Tensor shares = q.reshape({-1}).to(kFloat64);
  Tensor ranks;
  if (ignore_nan) {
    const Tensor highest = sorted.isnan().logical_not().sum(-1, true).sub(1);
    ranks = shares.mul(highest).clamp_min(0).expand(rank_sizes);
  } else {
    ranks = shares.mul(last).expand(rank_sizes).masked_fill(sorted.isnan().any(-1, true), last);
  }
  if (interpolation == "lower") ranks = ranks.floor();
  if (interpolation == "higher") ranks = ranks.ceil();
  if (interpolation == "nearest") ranks = ranks.round();
  const Tensor below = ranks.detach().to(kInt64);
  Tensor values = sorted.gather(-1, below);
  if (interpolation == "linear" || interpolation == "midpoint") {
    const Tensor weights =
        (interpolation == "midpoint" ? full_like(ranks, 0.5) : ranks.sub(below)).to(sorted.scalar_type());
    const Tensor above = sorted.gather(-1, ranks.detach().ceil().to(kInt64));
    values = values.lerp(above, weights);
  }
  if (q.dim() == 0) {
    values = values.squeeze(-1);
  } else {
    values = values.movedim(-1, 0);
  }
  if (!keepdim) return values;
  const int first = static_cast<int>(q.dim());
  if (dim && self.dim() > 0) return values.unsqueeze(first + at);
  Dims sizes = Dims::filled(self.impl().rank(), 1);
  if (q.dim() == 1) sizes.insert(0, q.numel());
  return values.reshape(sizes);
}

Tensor quantile_of(const char* name, const Tensor& self, const Tensor& q, std::optional<std::int64_t> dim, bool keepdim,
                   std::string_view interpolation, bool ignore_nan) {
  check_quantile(name, self, q, interpolation);
  return as_owned(quantile_view(self, q, dim, keepdim, interpolation, ignore_nan));
}

Tensor share(const char* name, double q, const Tensor& self) {
  if (!(q >= 0 && q <= 1)) throw Error(fmt::format("{}() q must be in the range [0, 1] but got {}", name, q));
  return scalar_tensor(q, self.options());
}

}  // namespace

Picked Tensor::sort(std::optional<bool>, std::int64_t dim, bool descending) const { return sort(dim, descending); }
Tensor Tensor::msort() const {
  TENON_SCOPE(msort, *this)
  return std::get<0>(sort(0));
}

Picked Tensor::median(std::int64_t dim, bool keepdim) const { return median_of("median", *this, dim, keepdim, false); }
Picked Tensor::nanmedian(std::int64_t dim, bool keepdim) const {
  return median_of("nanmedian", *this, dim, keepdim, true);
}
Tensor Tensor::median() const {
  TENON_SCOPE(median, *this)
  return median_of_all("median", "MedianBackward0", *this, false);
}
Tensor Tensor::nanmedian() const {
  TENON_SCOPE(nanmedian, *this)
  return median_of_all("nanmedian", "NanmedianBackward0", *this, true);
}

Picked Tensor::kthvalue(std::int64_t k, std::int64_t dim, bool keepdim) const {
  const int at = wrap_dim(dim, impl().rank());
  const std::int64_t length = this->dim() == 0 ? 1 : size(at);
  if (length > 0 && (k < 1 || k > length)) {
    throw Error(
        fmt::format("kthvalue(): selected number k out of range for dimension {}: k = {} of {}", at, k, length));
  }
  return pick("kthvalue", *this, dim, keepdim, [k](const Tensor&, const Tensor& order, int at) {
    return order.narrow(at, k - 1, 1).clone(MemoryFormat::Contiguous);
  });
}

Picked Tensor::mode(std::int64_t dim, bool keepdim) const {
  if (scalar_type() == kBool) {
    auto [values, places] = to(kByte).mode(dim, keepdim);
    return {values.to(kBool), places};
  }
  return pick("mode", *this, dim, keepdim, [](const Tensor& sorted, const Tensor& order, int at) {
    // How many equal values stand before each element: the first largest number is at the end of the longest run.
    const std::int64_t length = sorted.size(at);
    Dims line = Dims::filled(sorted.impl().rank(), 1);
    line[at] = length;
    const Tensor position = arange(length, order.options()).view(line).expand(sorted.sizes());
    const Tensor differs = sorted.slice(at, 1).ne(sorted.slice(at, 0, -1));
    const Tensor start = position.slice(at, 1).mul(differs);
    const Tensor run = position.sub(std::get<0>(cat({zeros_like(position.narrow(at, 0, 1)), start}, at).cummax(at)));
    return order.gather(at, run.argmax(at, true));
  });
}

Tensor Tensor::quantile(double q, std::optional<std::int64_t> dim, bool keepdim, std::string_view interpolation) const {
  TENON_AUTOCAST_METHOD(quantile, *this, q, dim, keepdim, interpolation)
  return quantile_of("quantile", *this, share("quantile", q, *this), dim, keepdim, interpolation, false);
}
Tensor Tensor::quantile(const Tensor& q, std::optional<std::int64_t> dim, bool keepdim,
                        std::string_view interpolation) const {
  TENON_AUTOCAST_METHOD(quantile, *this, q, dim, keepdim, interpolation)
  return quantile_of("quantile", *this, q, dim, keepdim, interpolation, false);
}
Tensor Tensor::nanquantile(double q, std::optional<std::int64_t> dim, bool keepdim,
                           std::string_view interpolation) const {
  TENON_AUTOCAST_METHOD(nanquantile, *this, q, dim, keepdim, interpolation)
  return quantile_of("nanquantile", *this, share("nanquantile", q, *this), dim, keepdim, interpolation, true);
}
Tensor Tensor::nanquantile(const Tensor& q, std::optional<std::int64_t> dim, bool keepdim,
                           std::string_view interpolation) const {
  TENON_AUTOCAST_METHOD(nanquantile, *this, q, dim, keepdim, interpolation)
  return quantile_of("nanquantile", *this, q, dim, keepdim, interpolation, true);
}

}  // namespace tenon
