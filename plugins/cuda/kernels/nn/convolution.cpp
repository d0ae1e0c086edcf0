// conv, conv_backward_input, conv_backward_weight: by cuDNN, and where it cannot, by Tenon's own kernels, which want no
// workspace. Each has a form "NAME.workspace" that takes what cuDNN asks for and computes nothing
// (dispatch/rehearsal.h).
#include "kernels/nn/convolution.h"

#include "kernels/kernels.h"

namespace tenon::cuda {
namespace {

void convolve(KernelContext& context, const Convolution& convolution) {
  const TensorView& output = convolution.output();
  if (output.element_count() == 0) return;
  if (!is_floating_point(output.dtype)) refuse_dtype("conv", output.dtype);
  if (!cudnn_convolution(context, convolution) && !convolution.rehearsed) direct_convolution(context, convolution);
}

const ConvAttributes& given(const void* attributes) { return *static_cast<const ConvAttributes*>(attributes); }
TensorView nothing() {
  TensorView view;
  view.rank = -1;
  return view;
}

template <bool rehearsed>
void conv(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  convolve(context, {ConvKind::kForward, inputs[0], inputs[1], outputs[0], inputs[2], given(attributes), rehearsed});
}
template <bool rehearsed>
void conv_backward_input(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  convolve(context,
           {ConvKind::kBackwardInput, outputs[0], inputs[1], inputs[0], nothing(), given(attributes), rehearsed});
}
template <bool rehearsed>
void conv_backward_weight(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  convolve(context,
           {ConvKind::kBackwardWeight, inputs[1], outputs[0], inputs[0], nothing(), given(attributes), rehearsed});
}

}  // namespace

void add_convolution(const KernelSink& sink) {
  sink.add(sink.host, "conv", &conv<false>);
  sink.add(sink.host, "conv_backward_input", &conv_backward_input<false>);
  sink.add(sink.host, "conv_backward_weight", &conv_backward_weight<false>);
  sink.add(sink.host, "conv.workspace", &conv<true>);
  sink.add(sink.host, "conv_backward_input.workspace", &conv_backward_input<true>);
  sink.add(sink.host, "conv_backward_weight.workspace", &conv_backward_weight<true>);
}

}  // namespace tenon::cuda
