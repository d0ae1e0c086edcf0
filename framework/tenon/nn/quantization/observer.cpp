// Observers: extremes as tensors give them, histograms on the host.
#include <tenon/nn/quantization/observer.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/error.h>
#include <tenon/nn/quantization/histogram.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/quantized/quantize.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace tenon::nn::quantization {
namespace {

void check_floats(const Tensor& values) {
  if (!values.is_floating_point())
    throw Error(std::string("an observer watches floats, not ") + toString(values.scalar_type()));
}

[[noreturn]] void throw_nothing_seen() {
  throw Error("the observer has seen nothing: run the prepared model on examples before convert()");
}

std::vector<float> on_host(const Tensor& values) {
  const Tensor host = values.to(kFloat32).cpu().contiguous();
  const auto* first = host.data_ptr<float>();
  return {first, first + host.numel()};
}

Parameters of_one(const OneParameter& one) { return {{one.scale}, {one.zero_point}}; }

}  // namespace

Observer::~Observer() = default;

OneParameter parameters_between(float low, float high, const ObserverOptions& options) {
  const auto least = static_cast<float>(quantized::lowest_of(options.dtype)) / (options.reduce_range ? 2 : 1);
  const auto most =
      std::floor(static_cast<float>(quantized::highest_of(options.dtype)) / (options.reduce_range ? 2 : 1));
  constexpr float kLeastScale = std::numeric_limits<float>::epsilon();
  low = std::min(low, 0.0F);
  high = std::max(high, 0.0F);
  if (options.symmetric) {
    const float scale = std::max(std::max(-low, high) / ((most - least) / 2), kLeastScale);
    return {scale, options.dtype == kUInt8 ? 128 : 0};
  }
  const float scale = std::max((high - low) / (most - least), kLeastScale);
  const float zero_point = std::clamp(least - std::nearbyint(low / scale), least, most);
  return {scale, static_cast<std::int64_t>(zero_point)};
}

void MinMaxObserver::observe(const Tensor& values) {
  check_floats(values);
  if (values.numel() == 0) return;
  NoGradGuard no_grad;
  const float low = values.amin().item<float>(), high = values.amax().item<float>();
  low_ = is_empty_ ? low : std::min(low_, low);
  high_ = is_empty_ ? high : std::max(high_, high);
  is_empty_ = false;
}

Parameters MinMaxObserver::calculate() const {
  if (is_empty_) throw_nothing_seen();
  return of_one(parameters_between(low_, high_, options()));
}

void MovingAverageMinMaxObserver::observe(const Tensor& values) {
  if (is_empty_) return MinMaxObserver::observe(values);
  check_floats(values);
  if (values.numel() == 0) return;
  NoGradGuard no_grad;
  const auto share = static_cast<float>(options().averaging_constant);
  low_ += share * (values.amin().item<float>() - low_);
  high_ += share * (values.amax().item<float>() - high_);
}

void PerChannelMinMaxObserver::observe(const Tensor& values) {
  check_floats(values);
  if (values.numel() == 0) return;
  NoGradGuard no_grad;
  const Tensor rows = values.transpose(0, options().channel_axis).flatten(1);
  const std::vector<float> low = on_host(rows.amin(1)), high = on_host(rows.amax(1));
  if (low_.empty()) {
    low_ = low;
    high_ = high;
    return;
  }
  if (low.size() != low_.size()) throw Error("an observer of channels saw another number of them before");
  for (std::size_t i = 0; i < low.size(); ++i) {
    low_[i] = std::min(low_[i], low[i]);
    high_[i] = std::max(high_[i], high[i]);
  }
}

Parameters PerChannelMinMaxObserver::calculate() const {
  if (low_.empty()) throw_nothing_seen();
  Parameters all;
  for (std::size_t i = 0; i < low_.size(); ++i) {
    const OneParameter one = parameters_between(low_[i], high_[i], options());
    all.scales.push_back(one.scale);
    all.zero_points.push_back(one.zero_point);
  }
  return all;
}

void HistogramObserver::observe(const Tensor& values) {
  check_floats(values);
  NoGradGuard no_grad;
  std::vector<float> seen = on_host(values);
  std::erase_if(seen, [](float value) { return std::isinf(value); });
  if (seen.empty()) return;
  const auto [least, most] = std::ranges::minmax(seen);
  const auto bins = static_cast<std::size_t>(options().bins);
  const float low = counts_.empty() ? least : std::min(low_, least),
              high = counts_.empty() ? most : std::max(high_, most);
  std::vector<double> counts = histogram(seen, bins, low, high);
  if (!counts_.empty()) add_histogram(counts, {low, high}, counts_, {low_, high_});
  counts_ = std::move(counts);
  low_ = low;
  high_ = high;
}

Parameters HistogramObserver::calculate() const {
  if (counts_.empty()) throw_nothing_seen();
  const Range range = range_of_least_error(counts_, {low_, high_}, 256);
  return of_one(parameters_between(range.low, range.high, options()));
}

}  // namespace tenon::nn::quantization
