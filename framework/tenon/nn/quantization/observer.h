// Observers: what watches values and says by which scale and zero point they shall become integers. Names and choices
// are those of torch.ao.quantization.
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tenon::nn::quantization {

struct ObserverOptions {
  Dtype dtype = kUInt8;              ///< of the integers: uint8 or int8
  bool symmetric = false;            ///< 0 stays in the middle of the range
  bool reduce_range = false;         ///< half of the range, for processors whose sums of two products saturate
  double averaging_constant = 0.01;  ///< the share of a batch (MovingAverageMinMaxObserver)
  std::int64_t bins = 2048;          ///< of HistogramObserver
  std::int64_t channel_axis = 0;     ///< of PerChannelMinMaxObserver
};

/// The choice: one scale and zero point, or one for each channel.
struct Parameters {
  std::vector<float> scales;
  std::vector<std::int64_t> zero_points;
};

/// Scale and zero point for values between `low` and `high`, so that 0 is an integer: torch.ao.quantization's formula.
struct OneParameter {
  float scale = 1;
  std::int64_t zero_point = 0;
};
/// Throws Error for dtypes other than uint8 and int8.
TENON_API OneParameter parameters_between(float low, float high, const ObserverOptions& options);

class TENON_EXPORT Observer {
 public:
  explicit Observer(const ObserverOptions& options) : options_(options) {}
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  TENON_API virtual ~Observer();
  /// Takes note of values: floating, of any sizes. Throws Error for integers.
  TENON_API virtual void observe(const Tensor& values) = 0;
  /// What was seen asks for these. Throws Error where nothing was observed.
  TENON_API virtual Parameters calculate() const = 0;
  /// What it was made with.
  const ObserverOptions& options() const { return options_; }

 private:
  ObserverOptions options_;
};
/// Makes an observer for each place that needs one.
using ObserverMaker = std::function<std::unique_ptr<Observer>()>;

/// The smallest and the largest value ever seen.
class TENON_EXPORT MinMaxObserver : public Observer {
 public:
  explicit MinMaxObserver(const ObserverOptions& options = {}) : Observer(options) {}
  TENON_API void observe(const Tensor& values) override;
  TENON_API Parameters calculate() const override;

 protected:
  bool is_empty_ = true;
  float low_ = 0, high_ = 0;
};

/// A moving average of the batches' smallest and largest values.
class TENON_EXPORT MovingAverageMinMaxObserver final : public MinMaxObserver {
 public:
  using MinMaxObserver::MinMaxObserver;
  TENON_API void observe(const Tensor& values) override;
};

/// The smallest and the largest value of each channel: for weights.
class TENON_EXPORT PerChannelMinMaxObserver final : public Observer {
 public:
  explicit PerChannelMinMaxObserver(const ObserverOptions& options = {}) : Observer(options) {}
  TENON_API void observe(const Tensor& values) override;
  TENON_API Parameters calculate() const override;

 private:
  std::vector<float> low_, high_;
};

/// Counts values in bins, and cuts ends off as long as the squared error of quantization falls: PyTorch's
/// HistogramObserver, after Caffe2's norm minimization. Infinite values are left out.
class TENON_EXPORT HistogramObserver final : public Observer {
 public:
  explicit HistogramObserver(const ObserverOptions& options = {}) : Observer(options) {}
  TENON_API void observe(const Tensor& values) override;
  TENON_API Parameters calculate() const override;

 private:
  std::vector<double> counts_;
  float low_ = 0, high_ = 0;
};

}  // namespace tenon::nn::quantization
