// Modules that rearrange pictures.
#include <tenon/nn/modules/fold.h>

#include <tenon/nn/functional/vision.h>

#include <ostream>

namespace tenon::nn {

namespace F = functional;

Tensor FoldImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return F::fold(input, options);
}
void FoldImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::Fold(output_size=" << options.output_size() << ", kernel_size=" << options.kernel_size()
         << ", dilation=" << options.dilation() << ", padding=" << options.padding() << ", stride=" << options.stride()
         << ")";
}

Tensor UnfoldImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return F::unfold(input, options);
}
void UnfoldImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::Unfold(kernel_size=" << options.kernel_size() << ", dilation=" << options.dilation()
         << ", padding=" << options.padding() << ", stride=" << options.stride() << ")";
}

Tensor PixelShuffleImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return F::pixel_shuffle(input, options);
}
void PixelShuffleImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::PixelShuffle(upscale_factor=" << options.upscale_factor() << ")";
}

Tensor PixelUnshuffleImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return F::pixel_unshuffle(input, options);
}
void PixelUnshuffleImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::PixelUnshuffle(downscale_factor=" << options.downscale_factor() << ")";
}

template class Cloneable<FoldImpl>;
template class Cloneable<UnfoldImpl>;
template class Cloneable<PixelShuffleImpl>;
template class Cloneable<PixelUnshuffleImpl>;

}  // namespace tenon::nn
