// Upsample: interpolation to a size, or by a factor, as a module.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/enum.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon::nn {

/// Exactly one of size and scale_factor, a number for each spatial dimension.
struct UpsampleOptions {
  using mode_t = enumtype::OneOf<enumtype::kNearest, enumtype::kLinear, enumtype::kBilinear, enumtype::kBicubic,
                                 enumtype::kTrilinear>;
  /// The output's spatial sizes; this or scale_factor.
  TENON_ARG(std::optional<std::vector<std::int64_t>>, size) = std::nullopt;
  /// The output's sizes by the input's; this or `size`.
  TENON_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  TENON_ARG(mode_t, mode) = enumtype::kNearest();  ///< kNearest, kLinear, kBilinear, kBicubic or kTrilinear
  /// Whether the centres of the corner elements coincide, or the corners themselves.
  TENON_ARG(std::optional<bool>, align_corners) = std::nullopt;
};

/// (N, C, …) with one, two or three spatial dimensions.
class TENON_EXPORT UpsampleImpl : public Cloneable<UpsampleImpl> {
 public:
  explicit UpsampleImpl(UpsampleOptions options = {}) : options(std::move(options)) {}
  void reset() override {}
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// (N, C, …) -> (N, C, …) of the size, or of the scale factors, that the options give.
  TENON_API Tensor forward(const Tensor& input);
  UpsampleOptions options;
};
TENON_LIBRARY_MODULE(Upsample);

}  // namespace tenon::nn
