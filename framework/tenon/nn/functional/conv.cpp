// Functional convolutions: "same" padding and the padding modes are settled here, the rest is one operator.
#include <tenon/nn/functional/conv.h>

#include <tenon/nn/functional/pad.h>
#include <tenon/ops/ops.h>

namespace tenon::nn::functional::detail {
namespace {

PadMode pad_mode(const ConvPaddingMode& mode) {
  if (mode.is<enumtype::kReflect>()) return enumtype::kReflect();
  if (mode.is<enumtype::kReplicate>()) return enumtype::kReplicate();
  if (mode.is<enumtype::kCircular>()) return enumtype::kCircular();
  return enumtype::kConstant();
}

template <std::size_t D>
Tensor call(const Tensor& x, const Tensor& w, const Tensor& b, const ExpandingArray<D>& stride,
            const ExpandingArray<D>& padding, const ExpandingArray<D>& dilation, std::int64_t groups) {
  if constexpr (D == 1) {
    return tenon::conv1d(x, w, b, *stride, *padding, *dilation, groups);
  } else if constexpr (D == 2) {
    return tenon::conv2d(x, w, b, *stride, *padding, *dilation, groups);
  } else {
    return tenon::conv3d(x, w, b, *stride, *padding, *dilation, groups);
  }
}

}  // namespace

template <std::size_t D>
Tensor conv(const Tensor& input, const Tensor& weight, const Tensor& bias, const ExpandingArray<D>& stride,
            const ConvPadding<D>& padding, const ExpandingArray<D>& dilation, std::int64_t groups,
            const ConvPaddingMode& padding_mode) {
  // What goes before and after each dimension.
  ExpandingArray<D> before(0), after(0);
  if (padding.is_same()) {
    if (!stride.all_equal(1)) throw Error("padding='same' is not supported for strided convolutions");
    for (std::size_t d = 0; d < D; ++d) {
      const std::int64_t total = dilation[d] * (weight.size(static_cast<std::int64_t>(d) + 2) - 1);
      before[d] = total / 2;
      after[d] = total - before[d];
    }
  } else if (const auto* numbers = padding.numbers()) {
    before = after = *numbers;
  }
  const bool zeros = padding_mode.is<enumtype::kZeros>();
  if (zeros && *before == *after) return call<D>(input, weight, bias, stride, before, dilation, groups);

  std::vector<std::int64_t> pads;  // last dimension first, as pad() wants them
  for (std::size_t d = D; d-- > 0;) {
    // The kernel pads both sides equally; only what is left over is padded here when the padding is zeros.
    const std::int64_t shared = zeros ? std::min(before[d], after[d]) : 0;
    pads.push_back(before[d] - shared);
    pads.push_back(after[d] - shared);
    before[d] = shared;
  }
  const Tensor padded = pad(input, PadFuncOptions(pads).mode(pad_mode(padding_mode)));
  return call<D>(padded, weight, bias, stride, before, dilation, groups);
}

template <std::size_t D>
Tensor conv_transpose(const Tensor& input, const Tensor& weight, const Tensor& bias, const ExpandingArray<D>& stride,
                      const ExpandingArray<D>& padding, const ExpandingArray<D>& output_padding, std::int64_t groups,
                      const ExpandingArray<D>& dilation) {
  if constexpr (D == 1) {
    return tenon::conv_transpose1d(input, weight, bias, *stride, *padding, *output_padding, groups, *dilation);
  } else if constexpr (D == 2) {
    return tenon::conv_transpose2d(input, weight, bias, *stride, *padding, *output_padding, groups, *dilation);
  } else {
    return tenon::conv_transpose3d(input, weight, bias, *stride, *padding, *output_padding, groups, *dilation);
  }
}

#define TENON_CONV(D)                                                                                                \
  template TENON_API Tensor conv<D>(const Tensor&, const Tensor&, const Tensor&, const ExpandingArray<D>&,           \
                                    const ConvPadding<D>&, const ExpandingArray<D>&, std::int64_t,                   \
                                    const ConvPaddingMode&);                                                         \
  template TENON_API Tensor conv_transpose<D>(const Tensor&, const Tensor&, const Tensor&, const ExpandingArray<D>&, \
                                              const ExpandingArray<D>&, const ExpandingArray<D>&, std::int64_t,      \
                                              const ExpandingArray<D>&);
TENON_CONV(1)
TENON_CONV(2)
TENON_CONV(3)
#undef TENON_CONV

}  // namespace tenon::nn::functional::detail
