// Functional forms for pictures: interpolation, sampling at the points of a grid, pixel shuffles.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/modules/fold.h>
#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/enum.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon::nn::functional {

struct InterpolateFuncOptions {
  using mode_t = enumtype::OneOf<enumtype::kNearest, enumtype::kLinear, enumtype::kBilinear, enumtype::kBicubic,
                                 enumtype::kTrilinear, enumtype::kArea, enumtype::kNearestExact>;
  /// The output's spatial sizes; this or scale_factor.
  TENON_ARG(std::optional<std::vector<std::int64_t>>, size) = std::nullopt;
  /// The output's sizes by the input's; this or `size`.
  TENON_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  /// One of kNearest, kNearestExact, kLinear, kBilinear, kBicubic, kTrilinear or kArea.
  TENON_ARG(mode_t, mode) = enumtype::kNearest();
  /// Whether the centres of the corner elements coincide, or the corners themselves.
  TENON_ARG(std::optional<bool>, align_corners) = std::nullopt;
  TENON_ARG(std::optional<bool>, recompute_scale_factor) = std::nullopt;  ///< positions follow from the sizes alone
  TENON_ARG(bool, antialias) = false;                                     ///< kBilinear and kBicubic only
};
/// (N, C, …) with one to three spatial dimensions, whose number the mode must fit. Exactly one of size and
/// scale_factor. Throws Error for another number of dims, for both or neither of the two, for another number of values
/// than spatial dims, and for align_corners or antialias in a mode that has none.
TENON_API Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options = {});

struct GridSampleFuncOptions {
  using mode_t = enumtype::OneOf<enumtype::kBilinear, enumtype::kNearest, enumtype::kBicubic>;
  using padding_mode_t = enumtype::OneOf<enumtype::kZeros, enumtype::kBorder, enumtype::kReflection>;
  TENON_ARG(mode_t, mode) = enumtype::kBilinear();               ///< kBilinear, kNearest or kBicubic
  TENON_ARG(padding_mode_t, padding_mode) = enumtype::kZeros();  ///< for points outside: kZeros, kBorder or kReflection
  /// Whether the centres of the corner elements coincide, or the corners themselves.
  TENON_ARG(std::optional<bool>, align_corners) = std::nullopt;
};
/// (N, C, H, W) sampled at grid (N, H', W', 2) -> (N, C, H', W'); 5-D alike. x comes before y; -1 and 1 are the outer
/// edges of the first and last pixel, with align_corners their centres. Warns where align_corners is not given.
TENON_API Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& options = {});
/// Sampling points for grid_sample() from affine maps: theta (N, 2, 3) or (N, 3, 4), size (N, C, H, W) or (N, C, D, H,
/// W) -> (N, H, W, 2) or (N, D, H, W, 3). Throws Error for a theta that is not floating, for another size of it, and a
/// size of other than 4 or 5 numbers above 0.
TENON_API Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners = false);

using PixelShuffleFuncOptions = PixelShuffleOptions;
using PixelUnshuffleFuncOptions = PixelUnshuffleOptions;
/// (…, C r^2, H, W) -> (…, C, H r, W r), r the upscale factor. Shi et al., 2016.
TENON_API Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options);
/// (…, C, H r, W r) -> (…, C r^2, H, W), the inverse of pixel_shuffle().
TENON_API Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options);

using FoldFuncOptions = FoldOptions;
using UnfoldFuncOptions = UnfoldOptions;
/// (N, C * kernel, windows) or (C * kernel, windows) -> (N, C, H, W) or (C, H, W): windows that overlap are summed.
/// Throws Error as tenon::col2im().
TENON_API Tensor fold(const Tensor& input, const FoldFuncOptions& options);
/// (N, C, H, W) -> (N, C * kernel, windows). Throws Error for another rank than 3 and 4, and where no window fits.
TENON_API Tensor unfold(const Tensor& input, const UnfoldFuncOptions& options);

}  // namespace tenon::nn::functional
