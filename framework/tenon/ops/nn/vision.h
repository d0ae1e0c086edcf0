// Operators of pictures: pixel shuffles, sampling at the points of a grid. Names, shapes and errors are PyTorch's.
#pragma once

#include <tenon/tensor/tensor.h>

#include <cstdint>

namespace tenon {

/// (*, C r^2, H, W) -> (*, C, H r, W r), with r = upscale_factor: Shi et al., "Real-time single image and video
/// super-resolution", 2016. Throws Error where r^2 does not divide the channels.
TENON_API Tensor pixel_shuffle(const Tensor& input, std::int64_t upscale_factor);
/// (*, C, H r, W r) -> (*, C r^2, H, W), with r = downscale_factor, the inverse of pixel_shuffle(). Throws Error where
/// r does not divide both sizes.
TENON_API Tensor pixel_unshuffle(const Tensor& input, std::int64_t downscale_factor);

/// theta (N, 2, 3) for size (N, C, H, W) or (N, 3, 4) for (N, C, D, H, W) -> grid (N, H, W, 2) or (N, D, H, W, 3):
/// where the affine map takes each output position, coordinates in [-1, 1]. Throws Error for a theta that is not
/// floating, and for a size of other than 4 or 5 numbers.
TENON_API Tensor affine_grid_generator(const Tensor& theta, IntArrayRef size, bool align_corners);

enum class GridInterpolation : std::int64_t { kBilinear, kNearest, kBicubic };
enum class GridPadding : std::int64_t { kZeros, kBorder, kReflection };

/// input (N, C, H, W), grid (N, H', W', 2) holding (x, y) in [-1, 1] -> (N, C, H', W'); or one dimension more, without
/// kBicubic. The modes are numbers of GridInterpolation and GridPadding. Differentiable in both, save that kNearest
/// gives the grid no gradient. Throws Error where dtypes are not floating or differ, for two devices, for other ranks,
/// for two batch sizes, for points of another number of coordinates, for an input with an empty spatial size, and for
/// kBicubic in three dimensions. Jaderberg et al., "Spatial transformer networks", 2015.
TENON_API Tensor grid_sampler(const Tensor& input, const Tensor& grid, std::int64_t interpolation_mode,
                              std::int64_t padding_mode, bool align_corners);

}  // namespace tenon
