// Random numbers: every draw takes its positions of a generator's Philox stream. Declared in factory.h and tensor.h.
#include <tenon/core/half.h>
#include <tenon/kernel/attributes/random.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/create/randint_like.h>
#include <tenon/ops/create/with_grad.h>
#include <tenon/ops/support/draw.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tenon {

using namespace ops;

namespace {

RandomAttributes draw(const Tensor& tensor, const std::optional<Generator>& generator) {
  check_written(tensor);  // before positions are taken
  RandomAttributes attributes;
  // As many blocks as elements, rounded up to 4: more than any draw takes.
  ops::draw(attributes, generator ? *generator : default_generator(tensor.device()),
            static_cast<std::uint64_t>(tensor.numel() + 3) / 4 * 4, tensor.device());
  return attributes;
}

/// Fills any strided tensor in place: kernels want contiguous outputs.
Tensor& fill_random(OperatorId op, const Tensor& self, const RandomAttributes& attributes, const Tensor& input = {}) {
  autograd::check_inplace(self);
  Recording recording =
      record<0>("RandomBackward0", {&self}, [](Backward& b) { b.set(0, b.grad().new_zeros(b.grad().sizes())); });
  if (self.is_contiguous()) {
    if (input.defined()) {
      run(op, ops::state_of(self), {view_of(self)}, {view_of(input)}, &attributes);
    } else {
      run(op, ops::state_of(self), {view_of(self)}, {undefined_view()}, &attributes);
    }
  } else {
    Tensor values = allocate_like(self, self.impl().sizes(), self.scalar_type());
    run(op, ops::state_of(self), {view_of(values)}, {view_of(input)}, &attributes);
    run(TENON_OP("copy"), ops::state_of(self), {view_of(self)}, {view_of(values)});
  }
  finish_inplace(self, recording);
  return const_cast<Tensor&>(self);
}

/// The next smaller one of the numbers that T has.
template <class T>
float next_below(T number) {
  const bool is_negative = (number.bits & 0x8000u) != 0;
  if (number.bits == 0) return T::from_bits(0x8001);
  return T::from_bits(static_cast<std::uint16_t>(is_negative ? number.bits + 1 : number.bits - 1));
}

/// The largest number of the dtype below the bound, which is finite.
double largest_below(double bound, Dtype dtype) {
  const auto of_two = [bound](double rounded, double smaller) { return rounded < bound ? rounded : smaller; };
  const auto single = static_cast<float>(bound);
  switch (dtype) {
    case kFloat16:
      return of_two(Half(single), next_below(Half(single)));
    case kBFloat16:
      return of_two(BFloat16(single), next_below(BFloat16(single)));
    case kFloat32:
      return of_two(single, std::nextafter(single, -std::numeric_limits<float>::infinity()));
    default:
      return std::nextafter(bound, -std::numeric_limits<double>::infinity());
  }
}

Tensor plain_empty(IntArrayRef sizes, const TensorOptions& options) {
  return empty(sizes, options.requires_grad(std::nullopt));
}

}  // namespace

Tensor& Tensor::uniform_(double from, double to, std::optional<Generator> generator) const {
  TENON_SCOPE(uniform_, *this, from, to, generator)
  check_floating("uniform_", *this);
  if (from > to) {
    throw Error("uniform_ expects to return a [from, to) range, but found from=" + std::to_string(from) +
                " > to=" + std::to_string(to));
  }
  RandomAttributes attributes = draw(*this, generator);
  attributes.a = from;
  attributes.b = to;
  // A number just below `to` would be rounded to it, of 16 bits one in a thousand.
  if (from < to && std::isfinite(to)) attributes.most = std::max(from, largest_below(to, scalar_type()));
  return fill_random(TENON_OP("uniform"), *this, attributes);
}
Tensor& Tensor::normal_(double mean, double deviation, std::optional<Generator> generator) const {
  TENON_SCOPE(normal_, *this, mean, deviation, generator)
  check_floating("normal_", *this);
  if (deviation < 0) throw Error("normal expects std >= 0.0, but found std " + std::to_string(deviation));
  RandomAttributes attributes = draw(*this, generator);
  attributes.a = mean;
  attributes.b = deviation;
  return fill_random(TENON_OP("normal"), *this, attributes);
}
Tensor& Tensor::exponential_(double rate, std::optional<Generator> generator) const {
  TENON_SCOPE(exponential_, *this, rate, generator)
  check_floating("exponential_", *this);
  if (rate <= 0) throw Error("exponential_ expects lambda > 0.0, but found lambda=" + std::to_string(rate));
  RandomAttributes attributes = draw(*this, generator);
  attributes.a = rate;
  return fill_random(TENON_OP("exponential"), *this, attributes);
}
Tensor& Tensor::bernoulli_(double p, std::optional<Generator> generator) const {
  TENON_SCOPE(bernoulli_, *this, p, generator)
  if (!(p >= 0 && p <= 1)) throw Error("bernoulli_ expects p to be in [0, 1], but got p=" + std::to_string(p));
  RandomAttributes attributes = draw(*this, generator);
  attributes.a = p;
  return fill_random(TENON_OP("bernoulli"), *this, attributes);
}
Tensor& Tensor::bernoulli_(const Tensor& p, std::optional<Generator> generator) const {
  TENON_SCOPE(bernoulli_, *this, p, generator)
  check_same_device("bernoulli_", {this, &p});
  const Tensor chances = p.detach().to(kFloat64).expand(sizes()).contiguous();
  return fill_random(TENON_OP("bernoulli"), *this, draw(*this, generator), chances);
}
Tensor Tensor::bernoulli(std::optional<Generator> generator) const {
  return tenon::bernoulli(*this, std::move(generator));
}
namespace {

/// Throws Error for a bound of random integers that the dtype does not hold; a floating one holds any.
void check_within(std::int64_t bound, const char* name, Dtype dtype) {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::lowest();
  std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  const auto take = [&](auto limits) {
    lowest = limits.lowest();
    highest = limits.max();
  };
  const char* type = "long";
  switch (dtype) {
    case kBool:
      take(std::numeric_limits<bool>());
      type = "bool";
      break;
    case kUInt8:
      take(std::numeric_limits<std::uint8_t>());
      type = "unsigned char";
      break;
    case kInt8:
      take(std::numeric_limits<std::int8_t>());
      type = "signed char";
      break;
    case kInt16:
      take(std::numeric_limits<std::int16_t>());
      type = "short";
      break;
    case kInt32:
      take(std::numeric_limits<std::int32_t>());
      type = "int";
      break;
    default:
      break;
  }
  if (bound < lowest || bound > highest)
    throw Error(std::string(name) + " is out of bounds for " + type + ": " + std::to_string(bound));
}

/// Behind the largest integer that random_ draws where nobody says so: of a floating dtype the largest up to which it
/// has all of them.
std::int64_t end_of_integers(Dtype dtype) {
  switch (dtype) {
    case kBool:
      return 2;
    case kUInt8:
      return 256;
    case kInt8:
      return 128;
    case kInt16:
      return 32768;
    case kInt32:
      return std::int64_t{1} << 31;
    case kFloat16:
      return (1 << 11) + 1;
    case kBFloat16:
      return (1 << 8) + 1;
    case kFloat32:
      return (1 << 24) + 1;
    case kFloat64:
      return (std::int64_t{1} << 53) + 1;
    default:
      return std::numeric_limits<std::int64_t>::max();
  }
}

}  // namespace

Tensor& Tensor::random_(std::int64_t from, std::optional<std::int64_t> to, std::optional<Generator> generator) const {
  TENON_SCOPE(random_, *this, from, to, generator)
  const std::int64_t high = to ? *to : end_of_integers(scalar_type());
  if (!to) check_within(from, "from", scalar_type());  // of two bounds their order comes first
  if (high <= from) {
    throw Error("random_ expects 'from' to be less than 'to', but got from=" + std::to_string(from) +
                " >= to=" + std::to_string(high));
  }
  check_within(from, "from", scalar_type());
  check_within(high - 1, "to - 1", scalar_type());
  RandomAttributes attributes = draw(*this, generator);
  attributes.low = from;
  attributes.high = high;
  return fill_random(TENON_OP("randint"), *this, attributes);
}
Tensor& Tensor::random_(std::int64_t to, std::optional<Generator> generator) const {
  return random_(0, to, std::move(generator));
}
Tensor& Tensor::random_(std::optional<Generator> generator) const {
  TENON_SCOPE(random_, *this, generator)
  return random_(0, end_of_integers(scalar_type()), std::move(generator));
}

Tensor rand(IntArrayRef sizes, std::optional<Generator> generator, const TensorOptions& options) {
  TENON_SCOPE(rand, sizes, generator, options)
  Tensor result = plain_empty(sizes, options);
  result.uniform_(0, 1, std::move(generator));
  result.impl().storage().version() = 0;
  return with_grad(std::move(result), options);
}
Tensor rand(IntArrayRef sizes, const TensorOptions& options) { return rand(sizes, std::nullopt, options); }
Tensor randn(IntArrayRef sizes, std::optional<Generator> generator, const TensorOptions& options) {
  TENON_SCOPE(randn, sizes, generator, options)
  Tensor result = plain_empty(sizes, options);
  result.normal_(0, 1, std::move(generator));
  result.impl().storage().version() = 0;
  return with_grad(std::move(result), options);
}
Tensor randn(IntArrayRef sizes, const TensorOptions& options) { return randn(sizes, std::nullopt, options); }
Tensor normal(double mean, double deviation, IntArrayRef sizes, std::optional<Generator> generator,
              const TensorOptions& options) {
  TENON_SCOPE(normal, mean, deviation, sizes, generator, options)
  Tensor result = plain_empty(sizes, options);
  result.normal_(mean, deviation, std::move(generator));
  result.impl().storage().version() = 0;
  return with_grad(std::move(result), options);
}
Tensor randint(std::int64_t low, std::int64_t high, IntArrayRef sizes, const TensorOptions& options) {
  TENON_SCOPE(randint, low, high, sizes, options)
  Tensor result = plain_empty(sizes, options.has_dtype() ? options : options.dtype(kInt64));
  result.random_(low, high);
  result.impl().storage().version() = 0;
  return with_grad(std::move(result), options);
}
Tensor randint(std::int64_t high, IntArrayRef sizes, const TensorOptions& options) {
  return randint(0, high, sizes, options);
}
Tensor randperm(std::int64_t n, const TensorOptions& options) {
  TENON_SCOPE(randperm, n, options)
  if (n < 0) throw Error("n must be non-negative, got " + std::to_string(n));
  Tensor result = plain_empty({n}, options.has_dtype() ? options : options.dtype(kInt64));
  const RandomAttributes attributes = draw(result, std::nullopt);
  run(TENON_OP("randperm"), ops::state_of(result), {view_of(result)}, {}, &attributes);
  return result;
}
Tensor rand_like(const Tensor& like, const TensorOptions& options) {
  TENON_SCOPE(rand_like, like, options)
  if (like.is_contiguous()) return rand(like.sizes(), like.options().merge_in(options));
  return as_fresh(with_grad(empty_like(like, options.requires_grad(false)).uniform_(), options));
}
Tensor randn_like(const Tensor& like, const TensorOptions& options) {
  TENON_SCOPE(randn_like, like, options)
  if (like.is_contiguous()) return randn(like.sizes(), like.options().merge_in(options));
  return as_fresh(with_grad(empty_like(like, options.requires_grad(false)).normal_(), options));
}
Tensor randint_like(const Tensor& like, std::int64_t low, std::int64_t high, const TensorOptions& options,
                    std::optional<MemoryFormat> format) {
  TENON_SCOPE(randint_like, like, low, high, options, format)
  Tensor result = empty_like(like, options.requires_grad(false), format);
  result.random_(low, high);
  return as_fresh(with_grad(std::move(result), options));
}
Tensor randint_like(const Tensor& like, std::int64_t high, const TensorOptions& options,
                    std::optional<MemoryFormat> format) {
  return randint_like(like, 0, high, options, format);
}
Tensor bernoulli(const Tensor& p, std::optional<Generator> generator) {
  TENON_SCOPE(bernoulli, p, generator)
  NoGradGuard no_grad;
  Tensor result = empty(p.sizes(), p.options().requires_grad(false));  // in order, as PyTorch's, whatever p's layout
  result.bernoulli_(p, std::move(generator));
  return as_fresh(result);
}

Tensor multinomial(const Tensor& weights, std::int64_t samples, bool replacement, std::optional<Generator> generator) {
  TENON_SCOPE(multinomial, weights, samples, replacement, generator)
  NoGradGuard no_grad;
  check_floating("multinomial", weights);
  if (samples <= 0) throw Error("cannot sample n_sample <= 0 samples");
  if (weights.dim() != 1 && weights.dim() != 2)
    throw Error("prob_dist must be 1 or 2 dim, got " + std::to_string(weights.dim()));
  const std::int64_t categories = weights.size(-1);
  if (!replacement && samples > categories) {
    throw Error("cannot sample n_sample > prob_dist.size(-1) samples without replacement (" + std::to_string(samples) +
                " > " + std::to_string(categories) + ")");
  }
  const Tensor p = weights.to(kFloat64);
  if (has_values(p)) {
    if (!p.isfinite().all().item<bool>() || p.lt(0).any().item<bool>()) {
      throw Error("probability tensor contains either `inf`, `nan` or element < 0");
    }
    if (p.sum(-1).le(0).any().item<bool>()) throw Error("invalid multinomial distribution (sum of probabilities <= 0)");
  }
  if (!replacement || samples == 1) {
    // The largest p / Exponential(1) are a draw without replacement.
    const Tensor keys = p.div(empty_like(p).exponential_(1, std::move(generator)));
    return std::get<1>(keys.topk(samples, -1));
  }
  const Tensor cumulative = p.cumsum(-1);
  const Tensor total = cumulative.narrow(-1, categories - 1, 1);
  std::vector<std::int64_t> sizes = weights.sizes().vec();
  sizes.back() = samples;
  const Tensor u = rand(sizes, std::move(generator), p.options()).mul(total);
  // How many cumulative weights lie at or below the draw.
  return u.unsqueeze(-1).ge(cumulative.unsqueeze(-2)).sum(-1).clamp_max(categories - 1);
}
Tensor Tensor::multinomial(std::int64_t samples, bool replacement, std::optional<Generator> generator) const {
  return tenon::multinomial(*this, samples, replacement, std::move(generator));
}

}  // namespace tenon
