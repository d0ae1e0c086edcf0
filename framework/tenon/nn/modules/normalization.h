// Normalisation over features: LayerNorm, RMSNorm, GroupNorm, LocalResponseNorm, CrossMapLRN2d.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/arg.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::nn {

struct LayerNormOptions {
  LayerNormOptions(std::vector<std::int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  /// The sizes of the last dims, which are normalised together.
  TENON_ARG(std::vector<std::int64_t>, normalized_shape);
  TENON_ARG(double, eps) = 1e-5;               ///< added to the variance
  TENON_ARG(bool, elementwise_affine) = true;  ///< whether there are a weight and a bias of these sizes
};

/// Over the trailing dimensions named by normalized_shape (Ba et al., 2016).
class TENON_EXPORT LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  explicit LayerNormImpl(std::vector<std::int64_t> normalized_shape)
      : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}
  TENON_API explicit LayerNormImpl(LayerNormOptions options);
  TENON_API void reset() override;
  /// Weight 1, bias 0.
  TENON_API void reset_parameters();
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// Any sizes that end in normalized_shape -> the same sizes, normalised over those last dims.
  TENON_API Tensor forward(const Tensor& input);

  LayerNormOptions options;
  Tensor weight;
  Tensor bias;
};
TENON_LIBRARY_MODULE(LayerNorm);

/// x / sqrt(mean(x^2) + eps) * weight over the trailing dimensions (Zhang and Sennrich, 2019).
struct RMSNormOptions {
  RMSNormOptions(std::vector<std::int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  /// The sizes of the last dims, which are normalised together.
  TENON_ARG(std::vector<std::int64_t>, normalized_shape);
  TENON_ARG(double, eps) = 1e-6;               ///< added to the variance
  TENON_ARG(bool, elementwise_affine) = true;  ///< whether there is a weight of these sizes
};
class TENON_EXPORT RMSNormImpl : public Cloneable<RMSNormImpl> {
 public:
  explicit RMSNormImpl(std::vector<std::int64_t> normalized_shape)
      : RMSNormImpl(RMSNormOptions(std::move(normalized_shape))) {}
  TENON_API explicit RMSNormImpl(RMSNormOptions options);
  TENON_API void reset() override;
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// Any sizes that end in normalized_shape -> the same sizes, divided by the root of the mean of squares (plus eps)
  /// over those last dims, times the weight if there is one.
  TENON_API Tensor forward(const Tensor& input);

  RMSNormOptions options;
  Tensor weight;
};
TENON_LIBRARY_MODULE(RMSNorm);

struct GroupNormOptions {
  GroupNormOptions(std::int64_t num_groups, std::int64_t num_channels)
      : num_groups_(num_groups), num_channels_(num_channels) {}
  TENON_ARG(std::int64_t, num_groups);    ///< how many groups the channels are cut into
  TENON_ARG(std::int64_t, num_channels);  ///< C of the input
  TENON_ARG(double, eps) = 1e-5;          ///< added to the variance
  TENON_ARG(bool, affine) = true;         ///< whether there are a weight and a bias for each channel
};
class TENON_EXPORT GroupNormImpl : public Cloneable<GroupNormImpl> {
 public:
  GroupNormImpl(std::int64_t num_groups, std::int64_t num_channels)
      : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  TENON_API explicit GroupNormImpl(const GroupNormOptions& options);
  TENON_API void reset() override;
  /// Weight 1, bias 0.
  TENON_API void reset_parameters();
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// (N, C, …) -> the same sizes, normalised over each group of C / num_groups channels.
  TENON_API Tensor forward(const Tensor& input);

  GroupNormOptions options;
  Tensor weight;
  Tensor bias;
};
TENON_LIBRARY_MODULE(GroupNorm);

struct LocalResponseNormOptions {
  LocalResponseNormOptions(std::int64_t size) : size_(size) {}  // NOLINT
  TENON_ARG(std::int64_t, size);                                ///< over how many neighbouring channels
  TENON_ARG(double, alpha) = 1e-4;                              ///< a factor of the sum of squares
  TENON_ARG(double, beta) = 0.75;                               ///< the power of the divisor
  TENON_ARG(double, k) = 1.0;                                   ///< what is added to the sum
};
struct CrossMapLRN2dOptions {
  CrossMapLRN2dOptions(std::int64_t size) : size_(size) {}  // NOLINT
  TENON_ARG(std::int64_t, size);                            ///< over how many neighbouring channels
  TENON_ARG(double, alpha) = 1e-4;                          ///< a factor of the sum of squares
  TENON_ARG(double, beta) = 0.75;                           ///< the power of the divisor
  TENON_ARG(std::int64_t, k) = 1;                           ///< what is added to the sum
};
#define TENON_RESPONSE_NORM(Name)                                               \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {                \
   public:                                                                      \
    explicit Name##Impl(std::int64_t size) : Name##Impl(Name##Options(size)) {} \
    explicit Name##Impl(const Name##Options& options) : options(options) {}     \
    void reset() override {}                                                    \
    TENON_API void pretty_print(std::ostream& stream) const override;           \
    TENON_API Tensor forward(const Tensor& input);                              \
    Name##Options options;                                                      \
  };                                                                            \
  TENON_LIBRARY_MODULE(Name);
/// (N, C, …) of rank 3 or more -> the same sizes: functional::local_response_norm(), with its errors. Krizhevsky et
/// al., 2012.
TENON_RESPONSE_NORM(LocalResponseNorm)
/// (N, C, …) of rank 3 or more -> the same sizes: as LocalResponseNorm, with an integer k.
TENON_RESPONSE_NORM(CrossMapLRN2d)
#undef TENON_RESPONSE_NORM

}  // namespace tenon::nn
