// Normalisation over a batch or over an instance: BatchNorm1d/2d/3d, InstanceNorm1d/2d/3d.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/arg.h>

#include <cstdint>
#include <optional>

namespace tenon::nn {

struct TENON_EXPORT BatchNormOptions {
  BatchNormOptions(std::int64_t num_features) : num_features_(num_features) {}  // NOLINT: as in libtorch
  TENON_ARG(std::int64_t, num_features);                                        ///< C of the input
  TENON_ARG(double, eps) = 1e-5;                                                ///< added to the variance
  /// Absent: a plain average over all batches.
  TENON_ARG(std::optional<double>, momentum) = 0.1;
  TENON_ARG(bool, affine) = true;               ///< whether there are a weight and a bias for each channel
  TENON_ARG(bool, track_running_stats) = true;  ///< whether running mean and variance are kept
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;

struct TENON_EXPORT InstanceNormOptions {
  InstanceNormOptions(std::int64_t num_features) : num_features_(num_features) {}  // NOLINT
  TENON_ARG(std::int64_t, num_features);                                           ///< C of the input
  TENON_ARG(double, eps) = 1e-5;                                                   ///< added to the variance
  TENON_ARG(double, momentum) = 0.1;             ///< the share of a batch in the running statistics
  TENON_ARG(bool, affine) = false;               ///< whether there are a weight and a bias for each channel
  TENON_ARG(bool, track_running_stats) = false;  ///< whether running mean and variance are kept
};
using InstanceNorm1dOptions = InstanceNormOptions;
using InstanceNorm2dOptions = InstanceNormOptions;
using InstanceNorm3dOptions = InstanceNormOptions;

/// Parameters and running statistics, which both kinds have. (An instance is visible only if its arguments are: hence
/// the mark on the options.)
template <class Derived, class Options>
class TENON_EXPORT NormImplBase : public Cloneable<Derived> {
 public:
  TENON_API explicit NormImplBase(const Options& options);
  TENON_API void reset() override;
  /// Running mean 0, running variance 1, no batch seen; nothing where statistics are not tracked.
  TENON_API void reset_running_stats();
  /// reset_running_stats(), and where affine weight 1, bias 0.
  TENON_API void reset_parameters();

  Options options;
  Tensor weight;  ///< undefined unless affine
  Tensor bias;
  Tensor running_mean;  ///< undefined unless running statistics are tracked
  Tensor running_var;
  Tensor num_batches_tracked;  ///< int64, rank 0

 protected:
  TENON_API void print_as(std::ostream& stream, const char* name) const;
};

#define TENON_NORM(D)                                                                                                 \
  class TENON_EXPORT BatchNorm##D##dImpl : public NormImplBase<BatchNorm##D##dImpl, BatchNormOptions> {               \
   public:                                                                                                            \
    explicit BatchNorm##D##dImpl(const BatchNormOptions& options) : NormImplBase(options) {}                          \
    TENON_API void pretty_print(std::ostream& stream) const override;                                                 \
    /** (N, C, …) of D spatial dimensions, for 1 also (N, C) -> the same sizes: normalised by the mean and variance \
     * of the batch in training or where none are tracked, else by the running ones. Ioffe and Szegedy, 2015. Throws  \
     * Error for other ranks, and ValueError for fewer than two values per channel in training. */                    \
    TENON_API Tensor forward(const Tensor& input);                                                                    \
  };                                                                                                                  \
  extern template class NormImplBase<BatchNorm##D##dImpl, BatchNormOptions>;                                          \
  TENON_LIBRARY_MODULE(BatchNorm##D##d);                                                                              \
  class TENON_EXPORT InstanceNorm##D##dImpl : public NormImplBase<InstanceNorm##D##dImpl, InstanceNormOptions> {      \
   public:                                                                                                            \
    explicit InstanceNorm##D##dImpl(const InstanceNormOptions& options) : NormImplBase(options) {}                    \
    TENON_API void pretty_print(std::ostream& stream) const override;                                                 \
    /** (N, C, …) or (C, …) of D spatial dimensions -> the same sizes: each channel of each instance normalised   \
     * by its own mean and variance, or by the tracked ones outside of training. Ulyanov et al., 2016. Throws Error   \
     * for other ranks. */                                                                                            \
    TENON_API Tensor forward(const Tensor& input);                                                                    \
  };                                                                                                                  \
  extern template class NormImplBase<InstanceNorm##D##dImpl, InstanceNormOptions>;                                    \
  TENON_LIBRARY_MODULE(InstanceNorm##D##d);
TENON_NORM(1)
TENON_NORM(2)
TENON_NORM(3)
#undef TENON_NORM

/// Converts the floating parameters and buffers of the module and of those below it to float16 or bfloat16, but for
/// those of BatchNorm1d, 2d and 3d, which stay as they are: sums over a batch do not fit into float16, and running
/// statistics change by less than 16 bits resolve. Batch norm takes inputs of 16 bits beside parameters of float32 and
/// gives 16 bits again. Throws Error for another dtype. (Module::half() converts everything.)
TENON_API void to_half_but_batch_norm(Module& module, Dtype dtype = Dtype::kFloat16);

}  // namespace tenon::nn
