// Functional pooling: F::max_pool2d(x, F::MaxPool2dFuncOptions(3).stride(2)).
#pragma once

#include <tenon/nn/modules/pooling.h>

#include <tuple>

namespace tenon::nn::functional {

template <std::size_t D>
struct MaxUnpoolFuncOptions {
  MaxUnpoolFuncOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  TENON_ARG(ExpandingArray<D>, kernel_size);  ///< the size of a window
  TENON_ARG(ExpandingArray<D>, stride);       ///< the distance between windows; kernel_size unless set
  TENON_ARG(ExpandingArray<D>, padding) = 0;  ///< at both ends of each spatial dim
  /// The output's sizes, where they do not follow from the others.
  TENON_ARG(std::optional<std::vector<std::int64_t>>, output_size) = std::nullopt;
};

// Of D spatial dimensions: (N, C, …) -> (N, C, windows…), or (C, …) without N. Means throw Error for dtypes that are
// not floating; maxima keep the input's dtype. Each throws Error for other ranks and a size of 0 (but N), and where the
// options have a padding above half of the kernel or no window fits.
#define TENON_POOL_FUNCTIONS(D)                                                                                        \
  using MaxPool##D##dFuncOptions = MaxPoolOptions<D>;                                                                  \
  using AvgPool##D##dFuncOptions = AvgPoolOptions<D>;                                                                  \
  using AdaptiveAvgPool##D##dFuncOptions = AdaptivePoolOptions<D>;                                                     \
  using AdaptiveMaxPool##D##dFuncOptions = AdaptivePoolOptions<D>;                                                     \
  using MaxUnpool##D##dFuncOptions = MaxUnpoolFuncOptions<D>;                                                          \
  /** Maxima over windows: see tenon::max_pool1d() and its likes on sizes and errors. */                               \
  TENON_API Tensor max_pool##D##d(const Tensor& input, const MaxPoolOptions<D>& options);                              \
  /** As max_pool, with the position of each maximum in the flattened spatial dimensions of the input (int64). */      \
  TENON_API std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input,                                \
                                                                   const MaxPoolOptions<D>& options);                  \
  /** Means over windows: see tenon::avg_pool1d() and its likes on sizes, divisor and errors. */                       \
  TENON_API Tensor avg_pool##D##d(const Tensor& input, const AvgPoolOptions<D>& options);                              \
  /** Means over output_size windows of nearly equal size; an absent size is the input's. Throws Error for a negative  \
   * size. */                                                                                                          \
  TENON_API Tensor adaptive_avg_pool##D##d(const Tensor& input, const AdaptivePoolOptions<D>& options);                \
  /** Maxima over output_size windows of nearly equal size; an absent size is the input's. Throws Error for a negative \
   * size. */                                                                                                          \
  TENON_API Tensor adaptive_max_pool##D##d(const Tensor& input, const AdaptivePoolOptions<D>& options);                \
  /** As adaptive_max_pool, with the position of each maximum in the flattened spatial dimensions (int64). */          \
  TENON_API std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(const Tensor& input,                       \
                                                                            const AdaptivePoolOptions<D>& options);    \
  /** The inverse of max_pool, zeros where no maximum came from: input and indices (int64, as max_pool gives them)     \
   * of the same sizes (N, C, …) or (C, …). Each spatial size is (size - 1) stride + kernel - 2 padding, or        \
   * output_size's. Throws Error for other sizes, an output_size of another length, and an index out of range. */      \
  TENON_API Tensor max_unpool##D##d(const Tensor& input, const Tensor& indices, const MaxUnpoolFuncOptions<D>& options);
TENON_POOL_FUNCTIONS(1)
TENON_POOL_FUNCTIONS(2)
TENON_POOL_FUNCTIONS(3)
#undef TENON_POOL_FUNCTIONS

using LPPool1dFuncOptions = LPPoolOptions<1>;
using LPPool2dFuncOptions = LPPoolOptions<2>;
using LPPool3dFuncOptions = LPPoolOptions<3>;
/// (sum of x^p over each window)^(1/p): (N, C, L) or (C, L).
TENON_API Tensor lp_pool1d(const Tensor& input, const LPPool1dFuncOptions& options);
/// (sum of x^p over each window)^(1/p): (N, C, H, W) or (C, H, W).
TENON_API Tensor lp_pool2d(const Tensor& input, const LPPool2dFuncOptions& options);
/// (sum of x^p over each window)^(1/p): (N, C, D, H, W) or (C, D, H, W).
TENON_API Tensor lp_pool3d(const Tensor& input, const LPPool3dFuncOptions& options);

using FractionalMaxPool2dFuncOptions = FractionalMaxPoolOptions<2>;
using FractionalMaxPool3dFuncOptions = FractionalMaxPoolOptions<3>;
/// Maxima over kernels at pseudo-random places: (N, C, H, W) or (C, H, W) to the output size or ratio. Graham, 2014.
/// Throws Error where neither is given, or where the kernels do not fit.
TENON_API Tensor fractional_max_pool2d(const Tensor& input, const FractionalMaxPool2dFuncOptions& options);
/// As fractional_max_pool2d(), of (N, C, D, H, W) or (C, D, H, W).
TENON_API Tensor fractional_max_pool3d(const Tensor& input, const FractionalMaxPool3dFuncOptions& options);
/// As fractional_max_pool2d(), with the place of each maximum in the H * W elements of its channel.
TENON_API std::tuple<Tensor, Tensor> fractional_max_pool2d_with_indices(const Tensor& input,
                                                                        const FractionalMaxPool2dFuncOptions& options);
/// As fractional_max_pool3d(), with the place of each maximum in the D * H * W elements of its channel.
TENON_API std::tuple<Tensor, Tensor> fractional_max_pool3d_with_indices(const Tensor& input,
                                                                        const FractionalMaxPool3dFuncOptions& options);

}  // namespace tenon::nn::functional
