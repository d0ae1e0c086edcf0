// Modules that rearrange pictures: Fold and Unfold (windows as columns), PixelShuffle and PixelUnshuffle.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/expanding_array.h>

#include <cstdint>

namespace tenon::nn {

struct FoldOptions {
  FoldOptions(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : output_size_(output_size), kernel_size_(kernel_size) {}
  TENON_ARG(ExpandingArray<2>, output_size);   ///< the spatial sizes of the output
  TENON_ARG(ExpandingArray<2>, kernel_size);   ///< the size of a window
  TENON_ARG(ExpandingArray<2>, dilation) = 1;  ///< the distance between elements of a kernel
  TENON_ARG(ExpandingArray<2>, padding) = 0;   ///< zeros at both ends of each spatial dim
  TENON_ARG(ExpandingArray<2>, stride) = 1;    ///< the distance between windows
};
struct UnfoldOptions {
  UnfoldOptions(ExpandingArray<2> kernel_size) : kernel_size_(kernel_size) {}  // NOLINT: as in libtorch
  TENON_ARG(ExpandingArray<2>, kernel_size);                                   ///< the size of a window
  TENON_ARG(ExpandingArray<2>, dilation) = 1;  ///< the distance between elements of a kernel
  TENON_ARG(ExpandingArray<2>, padding) = 0;   ///< zeros at both ends of each spatial dim
  TENON_ARG(ExpandingArray<2>, stride) = 1;    ///< the distance between windows
};
struct PixelShuffleOptions {
  PixelShuffleOptions(std::int64_t upscale_factor) : upscale_factor_(upscale_factor) {}  // NOLINT
  TENON_ARG(std::int64_t, upscale_factor);  ///< r: sizes become r times as large
};
struct PixelUnshuffleOptions {
  PixelUnshuffleOptions(std::int64_t downscale_factor) : downscale_factor_(downscale_factor) {}  // NOLINT
  TENON_ARG(std::int64_t, downscale_factor);  ///< r: sizes become r times as small
};

// Each forward is the function of that name in nn/functional/vision.h, for every dtype.
#define TENON_REARRANGEMENT(Name)                                         \
  explicit Name##Impl(const Name##Options& options) : options(options) {} \
  void reset() override {}                                                \
  TENON_API void pretty_print(std::ostream& stream) const override;       \
  TENON_API Tensor forward(const Tensor& input);                          \
  Name##Options options;
class TENON_EXPORT FoldImpl : public Cloneable<FoldImpl> {
 public:
  FoldImpl(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : FoldImpl(FoldOptions(output_size, kernel_size)) {}
  /// (N, C * kernel, windows) or (C * kernel, windows) -> (N, C, H, W) or (C, H, W): windows that overlap are summed.
  /// Throws Error where the sizes do not fit.
  TENON_REARRANGEMENT(Fold)
};
TENON_LIBRARY_MODULE(Fold);
class TENON_EXPORT UnfoldImpl : public Cloneable<UnfoldImpl> {
 public:
  explicit UnfoldImpl(ExpandingArray<2> kernel_size) : UnfoldImpl(UnfoldOptions(kernel_size)) {}
  /// (N, C, H, W) -> (N, C * kernel, windows). Throws Error for another rank, and where no window fits.
  TENON_REARRANGEMENT(Unfold)
};
TENON_LIBRARY_MODULE(Unfold);
class TENON_EXPORT PixelShuffleImpl : public Cloneable<PixelShuffleImpl> {
 public:
  /// (…, C r^2, H, W) -> (…, C, H r, W r), r the upscale factor. Throws Error where r^2 does not divide the channels.
  TENON_REARRANGEMENT(PixelShuffle)
};
TENON_LIBRARY_MODULE(PixelShuffle);
class TENON_EXPORT PixelUnshuffleImpl : public Cloneable<PixelUnshuffleImpl> {
 public:
  /// (…, C, H r, W r) -> (…, C r^2, H, W), r the downscale factor. Throws Error where r does not divide both sizes.
  TENON_REARRANGEMENT(PixelUnshuffle)
};
TENON_LIBRARY_MODULE(PixelUnshuffle);
#undef TENON_REARRANGEMENT

}  // namespace tenon::nn
