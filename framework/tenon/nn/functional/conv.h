// Functional convolutions: F::conv2d(x, weight, F::Conv2dFuncOptions().bias(b).stride(2)).
#pragma once

#include <tenon/nn/modules/conv.h>

namespace tenon::nn::functional {

namespace detail {
template <std::size_t D>
TENON_API Tensor conv(const Tensor& input, const Tensor& weight, const Tensor& bias, const ExpandingArray<D>& stride,
                      const ConvPadding<D>& padding, const ExpandingArray<D>& dilation, std::int64_t groups,
                      const ConvPaddingMode& padding_mode = enumtype::kZeros());
template <std::size_t D>
TENON_API Tensor conv_transpose(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                const ExpandingArray<D>& stride, const ExpandingArray<D>& padding,
                                const ExpandingArray<D>& output_padding, std::int64_t groups,
                                const ExpandingArray<D>& dilation);
}  // namespace detail

template <std::size_t D>
struct ConvFuncOptions {
  using padding_t = ConvPadding<D>;
  TENON_ARG(Tensor, bias) = Tensor();
  TENON_ARG(ExpandingArray<D>, stride) = 1;
  TENON_ARG(padding_t, padding) = ExpandingArray<D>(0);
  TENON_ARG(ExpandingArray<D>, dilation) = 1;
  TENON_ARG(std::int64_t, groups) = 1;
};
template <std::size_t D>
struct ConvTransposeFuncOptions {
  TENON_ARG(Tensor, bias) = Tensor();
  TENON_ARG(ExpandingArray<D>, stride) = 1;
  TENON_ARG(ExpandingArray<D>, padding) = 0;
  TENON_ARG(ExpandingArray<D>, output_padding) = 0;
  TENON_ARG(std::int64_t, groups) = 1;
  TENON_ARG(ExpandingArray<D>, dilation) = 1;
};

#define TENON_CONV(D)                                                                                              \
  using Conv##D##dFuncOptions = ConvFuncOptions<D>;                                                                \
  using ConvTranspose##D##dFuncOptions = ConvTransposeFuncOptions<D>;                                              \
  inline Tensor conv##D##d(const Tensor& input, const Tensor& weight, const Conv##D##dFuncOptions& options = {}) { \
    return detail::conv<D>(input, weight, options.bias(), options.stride(), options.padding(), options.dilation(), \
                           options.groups());                                                                      \
  }                                                                                                                \
  inline Tensor conv_transpose##D##d(const Tensor& input, const Tensor& weight,                                    \
                                     const ConvTranspose##D##dFuncOptions& options = {}) {                         \
    return detail::conv_transpose<D>(input, weight, options.bias(), options.stride(), options.padding(),           \
                                     options.output_padding(), options.groups(), options.dilation());              \
  }
TENON_CONV(1)
TENON_CONV(2)
TENON_CONV(3)
#undef TENON_CONV

}  // namespace tenon::nn::functional
