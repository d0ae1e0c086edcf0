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

/// Output element i of `dim` is a weighted sum of input elements around its position; weights and positions are
/// PyTorch's. Modes other than the nearest ones need a floating dtype. Throws Error for sizes below 1.
TENON_API Tensor resample(const Tensor& input, std::int64_t dim, std::int64_t size,
                          const ResampleOptions& options = {});

}  // namespace tenon
