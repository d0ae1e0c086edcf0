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
  TENON_ARG(Tensor, bias) = Tensor();                    ///< (O); undefined for none
  TENON_ARG(ExpandingArray<D>, stride) = 1;              ///< the distance between windows
  TENON_ARG(padding_t, padding) = ExpandingArray<D>(0);  ///< zeros at both ends of each spatial dim; or kValid, kSame
  TENON_ARG(ExpandingArray<D>, dilation) = 1;            ///< the distance between elements of a kernel
  TENON_ARG(std::int64_t, groups) = 1;                   ///< how many groups of channels are convolved apart
};
template <std::size_t D>
struct ConvTransposeFuncOptions {
  TENON_ARG(Tensor, bias) = Tensor();                ///< (O); undefined for none
  TENON_ARG(ExpandingArray<D>, stride) = 1;          ///< the distance between windows
  TENON_ARG(ExpandingArray<D>, padding) = 0;         ///< zeros at both ends of each spatial dim
  TENON_ARG(ExpandingArray<D>, output_padding) = 0;  ///< added to one end of the output's sizes
  TENON_ARG(std::int64_t, groups) = 1;               ///< how many groups of channels are convolved apart
  TENON_ARG(ExpandingArray<D>, dilation) = 1;        ///< the distance between elements of a kernel
};

// Of D spatial dimensions, each number of the options one for all of them or one for each.
#define TENON_CONV(D)                                                                                                 \
  using Conv##D##dFuncOptions = ConvFuncOptions<D>;                                                                   \
  using ConvTranspose##D##dFuncOptions = ConvTransposeFuncOptions<D>;                                                 \
  /** input (N, C, …) or (C, …), weight (out, C / groups, kernel…), bias (out) or undefined                     \
   * -> (N, out, …) or (out, …); each spatial size is floor((size + 2 padding - dilation (kernel - 1) - 1)        \
   * / stride) + 1, with kSame the input's. Integers are convolved too, without a gradient. Throws Error for sizes    \
   * that do not fit, different dtypes, a kernel larger than the padded input, bool, and kSame with a stride above 1. \
   */                                                                                                                 \
  inline Tensor conv##D##d(const Tensor& input, const Tensor& weight, const Conv##D##dFuncOptions& options = {}) {    \
    return detail::conv<D>(input, weight, options.bias(), options.stride(), options.padding(), options.dilation(),    \
                           options.groups());                                                                         \
  }                                                                                                                   \
  /** input (N, C, …) or (C, …), weight (C, out / groups, kernel…), bias (out) or undefined                     \
   * -> (N, out, …) or (out, …); each spatial size is (size - 1) stride - 2 padding + dilation (kernel - 1)       \
   * + output_padding + 1. Throws Error for sizes that do not fit, and an output_padding that is not below the        \
   * stride or the dilation. */                                                                                       \
  inline Tensor conv_transpose##D##d(const Tensor& input, const Tensor& weight,                                       \
                                     const ConvTranspose##D##dFuncOptions& options = {}) {                            \
    return detail::conv_transpose<D>(input, weight, options.bias(), options.stride(), options.padding(),              \
                                     options.output_padding(), options.groups(), options.dilation());                 \
  }
TENON_CONV(1)
TENON_CONV(2)
TENON_CONV(3)
#undef TENON_CONV

}  // namespace tenon::nn::functional
