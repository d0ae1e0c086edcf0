// Interpolation as selections: for each tap an index and a weight per output position. Selections are differentiable,
// so is their sum, and any device that can select can interpolate.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/nn/resample.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/support/support.h>
#include <tenon/tensor/literal.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tenon {

using namespace ops;

namespace {

/// Per output position the same number of taps, tap-major: index[k * size + i].
struct Taps {
  std::int64_t count = 1;
  std::vector<std::int64_t> index;
  std::vector<double> weight;  ///< empty: 1
};

Taps nearest_taps(std::int64_t in, std::int64_t out, const ResampleOptions& options) {
  // In float32, as in PyTorch: the rounding decides which neighbour is taken.
  const float step = options.scale && *options.scale > 0 ? static_cast<float>(1.0 / *options.scale)
                                                         : static_cast<float>(in) / static_cast<float>(out);
  const double offset = options.mode == Resampling::kNearestExact ? 0.5 : 0.0;
  Taps taps;
  for (std::int64_t i = 0; i < out; ++i) {
    const float position = static_cast<float>((static_cast<double>(i) + offset) * step);
    taps.index.push_back(std::min(static_cast<std::int64_t>(std::floor(position)), in - 1));
  }
  return taps;
}

double step_of(std::int64_t in, std::int64_t out, const ResampleOptions& options) {
  if (options.align_corners) return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
  if (options.scale && *options.scale > 0) return 1.0 / *options.scale;
  return static_cast<double>(in) / static_cast<double>(out);
}

/// Keys' cubic convolution kernel (1981).
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

Taps smooth_taps(std::int64_t in, std::int64_t out, const ResampleOptions& options) {
  const bool linear = options.mode == Resampling::kLinear;
  const double step = step_of(in, out, options);
  Taps taps;
  taps.count = linear ? 2 : 4;
  taps.index.resize(static_cast<std::size_t>(taps.count * out));
  taps.weight.resize(taps.index.size());
  for (std::int64_t i = 0; i < out; ++i) {
    double position =
        options.align_corners ? static_cast<double>(i) * step : (static_cast<double>(i) + 0.5) * step - 0.5;
    if (linear) position = std::max(position, 0.0);
    const auto base = static_cast<std::int64_t>(std::floor(position));
    const double t = position - static_cast<double>(base);
    for (std::int64_t k = 0; k < taps.count; ++k) {
      const std::int64_t offset = linear ? k : k - 1;
      const auto at = static_cast<std::size_t>(k * out + i);
      taps.index[at] = std::clamp<std::int64_t>(base + offset, 0, in - 1);
      taps.weight[at] = linear ? (k == 0 ? 1 - t : t) : cubic(static_cast<double>(offset) - t, -0.75);
    }
  }
  return taps;
}

/// The filter covers all input elements that an output element stands for.
Taps antialiased_taps(std::int64_t in, std::int64_t out, const ResampleOptions& options) {
  const bool linear = options.mode == Resampling::kLinear;
  const double step = step_of(in, out, options);
  const double widening = std::max(step, 1.0);
  const double support = (linear ? 1.0 : 2.0) * widening;
  Taps taps;
  taps.count = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
  taps.index.assign(static_cast<std::size_t>(taps.count * out), 0);
  taps.weight.assign(taps.index.size(), 0.0);
  for (std::int64_t i = 0; i < out; ++i) {
    const double centre = step * (static_cast<double>(i) + 0.5);
    // The half is of the window, and cut off as in PyTorch: no rounding.
    // NOLINTBEGIN(bugprone-incorrect-roundings)
    const std::int64_t first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const std::int64_t last = std::min(static_cast<std::int64_t>(centre + support + 0.5), in);
    // NOLINTEND(bugprone-incorrect-roundings)
    double total = 0;
    for (std::int64_t j = first; j < last && j - first < taps.count; ++j) {
      const double x = (static_cast<double>(j) - centre + 0.5) / widening;
      const double weight = linear ? std::max(0.0, 1 - std::abs(x)) : cubic(x, -0.5);
      const auto at = static_cast<std::size_t>((j - first) * out + i);
      taps.index[at] = j;
      taps.weight[at] = weight;
      total += weight;
    }
    for (std::int64_t k = 0; k < taps.count && total != 0; ++k)
      taps.weight[static_cast<std::size_t>(k * out + i)] /= total;
  }
  return taps;
}

}  // namespace

Tensor resample(const Tensor& input, std::int64_t dim, std::int64_t size, const ResampleOptions& options) {
  TENON_SCOPE(resample, input, dim, size, options)
  TENON_AUTOCAST_AS(upsample, resample(operands...), input, dim, size, options)
  dim = dim < 0 ? dim + input.dim() : dim;
  const std::int64_t in = input.size(dim);
  if (in < 1 || size < 1) {
    throw Error(
        fmt::format("interpolate: Input and output sizes should be greater than 0, but got input size {} and output "
                    "size {} in dimension {}",
                    in, size, dim));
  }
  const bool nearest = options.mode == Resampling::kNearest || options.mode == Resampling::kNearestExact;
  if (!nearest) check_floating("interpolate", input);
  // PyTorch's linear modes leave a dimension of the same size alone even if a scale was given; the others do not.
  if (in == size && (!options.scale || options.mode == Resampling::kLinear) && !options.antialias) return input;
  const Taps taps = nearest             ? nearest_taps(in, size, options)
                    : options.antialias ? antialiased_taps(in, size, options)
                                        : smooth_taps(in, size, options);
  const Tensor indices = tenon::tensor(taps.index, TensorOptions(kInt64)).to(input.device());
  if (taps.weight.empty()) return input.index_select(dim, indices);
  Dims shape;
  for (std::int64_t d = 0; d < input.dim(); ++d) shape.push_back(d == dim ? size : 1);
  const Tensor weights = tenon::tensor(taps.weight, TensorOptions(kFloat64)).to(input.options());
  Tensor sum;
  for (std::int64_t k = 0; k < taps.count; ++k) {
    const Tensor part =
        input.index_select(dim, indices.narrow(0, k * size, size)) * weights.narrow(0, k * size, size).view(shape);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

}  // namespace tenon
