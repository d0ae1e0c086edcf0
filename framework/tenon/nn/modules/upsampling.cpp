// Upsample.
#include <tenon/nn/modules/upsampling.h>

#include <tenon/nn/functional/vision.h>
#include <tenon/tensor/shape/array_ref.h>

#include <ostream>

namespace tenon::nn {

void UpsampleImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::Upsample(";
  if (options.scale_factor()) {
    stream << "scale_factor=" << ArrayRef<double>(*options.scale_factor());
  } else if (options.size()) {
    stream << "size=" << IntArrayRef(*options.size());
  }
  stream << ", mode=" << enumtype::get_enum_name(options.mode()) << ")";
}

Tensor UpsampleImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  functional::InterpolateFuncOptions interpolation;
  interpolation.size(options.size()).scale_factor(options.scale_factor()).align_corners(options.align_corners());
  interpolation.mode(options.mode());
  return functional::interpolate(input, interpolation);
}

template class Cloneable<UpsampleImpl>;

}  // namespace tenon::nn
