// Functional forms for pictures. Interpolation works dimension by dimension: every mode is separable.
#include <tenon/nn/functional/vision.h>

#include <tenon/ops/nn/resample.h>
#include <tenon/ops/nn/vision.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/libtorch/warning.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace tenon::nn::functional {
namespace {

template <class Word>
bool is(const InterpolateFuncOptions& options) {
  return options.mode().template is<Word>();
}

/// Dimensions that the mode is made for; 0: any.
std::int64_t spatial_of(const InterpolateFuncOptions& options) {
  if (is<enumtype::kLinear>(options)) return 1;
  if (is<enumtype::kBilinear>(options) || is<enumtype::kBicubic>(options)) return 2;
  return is<enumtype::kTrilinear>(options) ? 3 : 0;
}

std::string mode_name(const InterpolateFuncOptions& options) {
  std::string name = enumtype::get_enum_name(options.mode()).substr(1);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  return name;
}

void check_interpolation(const Tensor& input, const InterpolateFuncOptions& options) {
  const std::int64_t spatial = input.dim() - 2, wanted = spatial_of(options);
  if (spatial < 1 || spatial > 3 || (wanted == 2 && is<enumtype::kBicubic>(options) && spatial != 2)) {
    throw Error(fmt::format(
        "Input Error: Only 3D, 4D and 5D input Tensors supported (got {}D) for the modes: nearest | linear | "
        "bilinear | bicubic | trilinear (got {})",
        input.dim(), enumtype::get_enum_name(options.mode())));
  }
  if (wanted != 0 && wanted != spatial) {
    throw Error(fmt::format("Got {}D input, but {} mode needs {}D input", input.dim(), mode_name(options), wanted + 2));
  }
  if (options.align_corners() && (is<enumtype::kNearest>(options) || is<enumtype::kArea>(options))) {
    throw Error(
        "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear");
  }
  if (options.antialias() && wanted != 2) {
    throw Error("Anti-alias option is only supported for bilinear and bicubic modes");
  }
  if (!options.align_corners() && wanted != 0) {
    TENON_WARN(
        "Default upsampling behavior when mode=", mode_name(options),
        " is changed to align_corners=False since 0.4.0. Please specify align_corners=True if the old behavior is "
        "desired. See the documentation of nn.Upsample for details.");
  }
}

std::vector<std::int64_t> interpolated_size(const Tensor& input, const InterpolateFuncOptions& options) {
  const auto& size = options.size();
  const auto& factors = options.scale_factor();
  const auto spatial = static_cast<std::size_t>(input.dim() - 2);
  if (!size && !factors) throw Error("either size or scale_factor should be defined");
  if (size && factors) throw Error("only one of size or scale_factor should be defined");
  if (size) {
    if (size->size() != spatial) {
      throw Error(fmt::format("size shape must match input shape. Input is {}D, size is {}", spatial,
                              to_string(IntArrayRef(*size))));
    }
    return *size;
  }
  if (factors->size() != spatial) {
    std::ostringstream text;
    text << ArrayRef<double>(*factors);
    throw Error(fmt::format("scale_factor shape must match input shape. Input is {}D, scale_factor size is {}", spatial,
                            text.str()));
  }
  std::vector<std::int64_t> sizes;
  bool fractional = false;
  for (std::size_t d = 0; d < spatial; ++d) {
    const double factor = (*factors)[d];
    fractional = fractional || std::floor(factor) != factor;
    sizes.push_back(static_cast<std::int64_t>(
        std::floor(static_cast<double>(input.size(static_cast<std::int64_t>(d) + 2)) * factor)));
  }
  if (fractional && !options.recompute_scale_factor()) {
    TENON_WARN(
        "The default behavior for interpolate/upsample with float scale_factor changed in 1.6.0 to align with other "
        "frameworks/libraries, and uses scale_factor directly, instead of relying on the computed output size. If you "
        "wish to "
        "keep the old behavior, please set recompute_scale_factor=True. See the documentation of nn.Upsample for "
        "details. ");
  }
  return sizes;
}

Resampling resampling_of(const InterpolateFuncOptions& options) {
  if (is<enumtype::kNearest>(options)) return Resampling::kNearest;
  if (is<enumtype::kNearestExact>(options)) return Resampling::kNearestExact;
  return is<enumtype::kBicubic>(options) ? Resampling::kCubic : Resampling::kLinear;
}

}  // namespace

Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options) {
  check_interpolation(input, options);
  const std::vector<std::int64_t> sizes = interpolated_size(input, options);
  if (is<enumtype::kArea>(options)) {
    switch (sizes.size()) {
      case 1:
        return tenon::adaptive_avg_pool1d(input, sizes);
      case 2:
        return tenon::adaptive_avg_pool2d(input, sizes);
      default:
        return tenon::adaptive_avg_pool3d(input, sizes);
    }
  }
  const bool scaled = options.scale_factor() && !options.recompute_scale_factor().value_or(false);
  Tensor y = input;
  // Innermost first: the later passes then see the smaller share of strided selections.
  for (std::size_t d = sizes.size(); d-- > 0;) {
    y = tenon::resample(y, static_cast<std::int64_t>(d) + 2, sizes[d],
                        {.mode = resampling_of(options),
                         .align_corners = options.align_corners().value_or(false),
                         .scale = scaled ? std::optional((*options.scale_factor())[d]) : std::nullopt,
                         .antialias = options.antialias()});
  }
  const MemoryFormat format = input.suggest_memory_format();
  return y.is_same(input) ? input.clone(format) : y.contiguous(format);
}

Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& options) {
  if (!options.align_corners()) {
    TENON_WARN(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.");
  }
  // The operator's numbers.
  const std::int64_t mode = options.mode().is<enumtype::kBilinear>()  ? 0
                            : options.mode().is<enumtype::kNearest>() ? 1
                                                                      : 2;
  const auto& outside = options.padding_mode();
  const std::int64_t padding = outside.is<enumtype::kZeros>() ? 0 : outside.is<enumtype::kBorder>() ? 1 : 2;
  return tenon::grid_sampler(input, grid, mode, padding, options.align_corners().value_or(false));
}

Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  if (!theta.is_floating_point()) {
    std::ostringstream text;
    text << theta.dtype();
    throw Error(fmt::format("Expected theta to have floating point type, but got {}", text.str()));
  }
  const std::size_t rank = size.size();
  if (rank != 4 && rank != 5) {
    throw Error(fmt::format(
        "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
        "{}",
        to_string(size)));
  }
  const auto spatial = static_cast<std::int64_t>(rank) - 2;
  if (theta.dim() != 3 || theta.size(-2) != spatial || theta.size(-1) != spatial + 1) {
    throw Error(fmt::format("Expected a batch of {}D affine matrices of shape Nx{}x{} for size {}. Got {}.", spatial,
                            spatial, spatial + 1, to_string(size), to_string(theta.sizes())));
  }
  if (*std::min_element(size.begin(), size.end()) <= 0) {
    throw Error(fmt::format("Expected non-zero, positive output size. Got {}", to_string(size)));
  }
  return tenon::affine_grid_generator(theta, size, align_corners);
}

Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options) {
  return tenon::pixel_shuffle(input, options.upscale_factor());
}
Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options) {
  return tenon::pixel_unshuffle(input, options.downscale_factor());
}

Tensor fold(const Tensor& input, const FoldFuncOptions& o) {
  if (input.dim() != 2 && input.dim() != 3) {
    throw Error(fmt::format("Input Error: Only unbatched (2D) or batched (3D) input Tensors are supported (got {}D)",
                            input.dim()));
  }
  return tenon::col2im(input, *o.output_size(), *o.kernel_size(), *o.dilation(), *o.padding(), *o.stride());
}
Tensor unfold(const Tensor& input, const UnfoldFuncOptions& o) {
  if (input.dim() != 4) {
    throw Error(fmt::format("Input Error: Only 4D input Tensors are supported (got {}D)", input.dim()));
  }
  return tenon::im2col(input, *o.kernel_size(), *o.dilation(), *o.padding(), *o.stride());
}

}  // namespace tenon::nn::functional
