// Interpolation of one dimension: what every mode of nn::functional::interpolate is made of.
#pragma once

#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <optional>

namespace tenon {

enum class Resampling { kNearest, kNearestExact, kLinear, kCubic };

struct ResampleOptions {
  Resampling mode = Resampling::kNearest;
  bool align_corners = false;        ///< kLinear, kCubic: the corner elements' centres coincide
  std::optional<double> scale = {};  ///< as the caller gave it; otherwise output size / input size
  bool antialias = false;            ///< kLinear, kCubic: the filter widens where the output is smaller
};

/// The input with `dim` of the given size: each element is a weighted sum of the input's elements around its position,
/// with PyTorch's weights and positions; kCubic is Keys, "Cubic convolution interpolation", 1981. Throws Error for
/// sizes below 1, and for a dtype that is not floating unless the mode is a nearest one.
TENON_API Tensor resample(const Tensor& input, std::int64_t dim, std::int64_t size,
                          const ResampleOptions& options = {});

}  // namespace tenon
