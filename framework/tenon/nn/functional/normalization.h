// Functional normalisation: F::layer_norm(x, F::LayerNormFuncOptions({3}).weight(w)), F::batch_norm(x, mean, var, …).
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/arg.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tenon::nn::functional {

struct BatchNormFuncOptions {
  TENON_ARG(Tensor, weight) = Tensor();  ///< a factor; undefined for none
  TENON_ARG(Tensor, bias) = Tensor();    ///< is added; undefined for none
  TENON_ARG(bool, training) = false;     ///< whether it is training: evaluation otherwise
  /// The share of a batch in the running statistics; without one their mean over all batches.
  TENON_ARG(std::optional<double>, momentum) = 0.1;
  TENON_ARG(double, eps) = 1e-5;  ///< added to the variance
};
struct InstanceNormFuncOptions {
  TENON_ARG(Tensor, running_mean) = Tensor();  ///< (C), updated in training; undefined for none
  TENON_ARG(Tensor, running_var) = Tensor();   ///< (C), updated in training; undefined for none
  TENON_ARG(Tensor, weight) = Tensor();        ///< a factor; undefined for none
  TENON_ARG(Tensor, bias) = Tensor();          ///< is added; undefined for none
  TENON_ARG(bool, use_input_stats) = true;     ///< normalise by the input's own statistics, not by the running ones
  TENON_ARG(double, momentum) = 0.1;           ///< the share of a batch in the running statistics
  TENON_ARG(double, eps) = 1e-5;               ///< added to the variance
};
struct LayerNormFuncOptions {
  LayerNormFuncOptions(std::vector<std::int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  /// The sizes of the last dims, which are normalised together.
  TENON_ARG(std::vector<std::int64_t>, normalized_shape);
  TENON_ARG(Tensor, weight) = {};  ///< a factor; undefined for none
  TENON_ARG(Tensor, bias) = {};    ///< is added; undefined for none
  TENON_ARG(double, eps) = 1e-5;   ///< added to the variance
};
struct GroupNormFuncOptions {
  GroupNormFuncOptions(std::int64_t num_groups) : num_groups_(num_groups) {}  // NOLINT
  TENON_ARG(std::int64_t, num_groups);  ///< how many groups the channels are cut into
  TENON_ARG(Tensor, weight) = {};       ///< a factor; undefined for none
  TENON_ARG(Tensor, bias) = {};         ///< is added; undefined for none
  TENON_ARG(double, eps) = 1e-5;        ///< added to the variance
};
struct LocalResponseNormFuncOptions {
  LocalResponseNormFuncOptions(std::int64_t size) : size_(size) {}  // NOLINT
  TENON_ARG(std::int64_t, size);                                    ///< over how many neighbouring channels
  TENON_ARG(double, alpha) = 1e-4;                                  ///< a factor of the sum of squares
  TENON_ARG(double, beta) = 0.75;                                   ///< the power of the divisor
  TENON_ARG(double, k) = 1.0;                                       ///< what is added to the sum
};
struct NormalizeFuncOptions {
  TENON_ARG(double, p) = 2.0;                            ///< of the p-norm
  TENON_ARG(std::int64_t, dim) = 1;                      ///< along which dim
  TENON_ARG(double, eps) = 1e-12;                        ///< the least divisor
  TENON_ARG(std::optional<Tensor>, out) = std::nullopt;  ///< a tensor for the result
};

namespace detail {
/// training: statistics of this batch, and running ones updated where given.
TENON_API Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                            const Tensor& weight, const Tensor& bias, bool training, double momentum, double eps);
TENON_API Tensor instance_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                               const Tensor& weight, const Tensor& bias, bool use_input_stats, double momentum,
                               double eps);
TENON_API Tensor layer_norm(const Tensor& input, const std::vector<std::int64_t>& normalized_shape,
                            const Tensor& weight, const Tensor& bias, double eps);
TENON_API Tensor group_norm(const Tensor& input, std::int64_t num_groups, const Tensor& weight, const Tensor& bias,
                            double eps);
TENON_API Tensor local_response_norm(const Tensor& input, std::int64_t size, double alpha, double beta, double k);
}  // namespace detail

/// (N, C, …): normalised over all but the channels, with the batch's statistics in training (running ones are then
/// updated), else with the running ones. Ioffe and Szegedy, 2015. Throws ValueError for fewer than two values per
/// channel in training.
TENON_API Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                            const BatchNormFuncOptions& options = {});
/// (N, C, …): normalised over the spatial dims of each picture and channel. Ulyanov et al., 2016.
TENON_API Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& options = {});
/// Normalised over the last dims, whose sizes are normalized_shape. Ba et al., 2016.
TENON_API Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options);
/// (N, C, …): normalised over each group of C / num_groups channels. Wu and He, 2018. Throws Error where C is no
/// multiple.
TENON_API Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options);
/// x / (k + alpha * mean of squares over `size` neighbouring channels)^beta, zeros beyond the first and last; (N, C, …)
/// of rank 3 or more. Krizhevsky et al., 2012. Throws Error below rank 3.
TENON_API Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& options);
/// x / max(norm_p(x), eps) along `dim`; copied into `out`, which is then returned, where one is given.
TENON_API Tensor normalize(const Tensor& input, NormalizeFuncOptions options = {});

}  // namespace tenon::nn::functional
