// Convolutions and transposed convolutions in one, two and three dimensions.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/enum.h>
#include <tenon/nn/options/expanding_array.h>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::nn {

using ConvPaddingMode =
    enumtype::OneOf<enumtype::kZeros, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;

/// What is added around an input: numbers, kValid for none, or kSame for as much as keeps the sizes.
template <std::size_t D>
class ConvPadding {
 public:
  ConvPadding(enumtype::kValid) : kind_(Kind::kValid) {}                    // NOLINT: as a variant
  ConvPadding(enumtype::kSame) : kind_(Kind::kSame) {}                      // NOLINT
  ConvPadding(ExpandingArray<D> numbers) : numbers_(std::move(numbers)) {}  // NOLINT
  /// Whatever makes an ExpandingArray.
  template <class Numbers>
  requires(std::is_convertible_v<const Numbers&, ExpandingArray<D>>) ConvPadding(const Numbers& numbers)  // NOLINT
      : numbers_(numbers) {}

  /// Whether it is kSame.
  bool is_same() const { return kind_ == Kind::kSame; }
  /// The numbers; null for a word.
  const ExpandingArray<D>* numbers() const { return kind_ == Kind::kNumbers ? &numbers_ : nullptr; }

 private:
  enum class Kind { kNumbers, kValid, kSame };
  ExpandingArray<D> numbers_ = 0;
  Kind kind_ = Kind::kNumbers;
};

template <std::size_t D>
struct ConvOptions {
  using padding_mode_t = ConvPaddingMode;
  using padding_t = ConvPadding<D>;
  ConvOptions(std::int64_t in_channels, std::int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(std::move(kernel_size)) {}
  TENON_ARG(std::int64_t, in_channels);       ///< C of the input
  TENON_ARG(std::int64_t, out_channels);      ///< C of the output
  TENON_ARG(ExpandingArray<D>, kernel_size);  ///< the size of a window
  TENON_ARG(ExpandingArray<D>, stride) = 1;   ///< the distance between windows

 public:
  /// Numbers, one number for all sides, kValid or kSame.
  ConvOptions& padding(std::initializer_list<std::int64_t> list) {
    padding_ = ExpandingArray<D>(list);
    return *this;
  }
  TENON_ARG(padding_t, padding) = ExpandingArray<D>(0);  ///< at both ends of each spatial dim
  TENON_ARG(ExpandingArray<D>, dilation) = 1;            ///< the distance between elements of a kernel
  TENON_ARG(std::int64_t, groups) = 1;                   ///< how many groups of channels are convolved apart
  TENON_ARG(bool, bias) = true;                          ///< whether there is a bias
  /// What padding holds: kZeros, kReflect, kReplicate or kCircular.
  TENON_ARG(padding_mode_t, padding_mode) = enumtype::kZeros();
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

/// Convolution of D spatial dimensions. reset() throws Error for channels or groups below 1, and where the groups do
/// not divide the channels.
template <std::size_t D, class Derived>
class TENON_EXPORT ConvNdImpl : public Cloneable<Derived> {
 public:
  TENON_API explicit ConvNdImpl(ConvOptions<D> options);
  TENON_API void reset() override;
  /// Draws weight and bias anew: Kaiming uniform with a = sqrt(5), bias from U(-b, b), b = 1 / sqrt(fan in).
  TENON_API void reset_parameters();
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// (N, in_channels, …) or (in_channels, …) -> (N, out_channels, …) or (out_channels, …): functional::conv1d() and its
  /// likes, with its errors.
  TENON_API Tensor forward(const Tensor& input);

  ConvOptions<D> options;
  Tensor weight;  ///< (out_channels, in_channels / groups, kernel…)
  Tensor bias;
};

template <std::size_t D>
struct ConvTransposeOptions {
  using padding_mode_t = ConvPaddingMode;
  ConvTransposeOptions(std::int64_t in_channels, std::int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(std::move(kernel_size)) {}
  TENON_ARG(std::int64_t, in_channels);              ///< C of the input
  TENON_ARG(std::int64_t, out_channels);             ///< C of the output
  TENON_ARG(ExpandingArray<D>, kernel_size);         ///< the size of a window
  TENON_ARG(ExpandingArray<D>, stride) = 1;          ///< the distance between windows
  TENON_ARG(ExpandingArray<D>, padding) = 0;         ///< at both ends of each spatial dim
  TENON_ARG(ExpandingArray<D>, output_padding) = 0;  ///< added to one end of the output's sizes
  TENON_ARG(std::int64_t, groups) = 1;               ///< how many groups of channels are convolved apart
  TENON_ARG(bool, bias) = true;                      ///< whether there is a bias
  TENON_ARG(ExpandingArray<D>, dilation) = 1;        ///< the distance between elements of a kernel
  /// What padding holds: kZeros, kReflect, kReplicate or kCircular.
  TENON_ARG(padding_mode_t, padding_mode) = enumtype::kZeros();
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

template <std::size_t D, class Derived>
class TENON_EXPORT ConvTransposeNdImpl : public Cloneable<Derived> {
 public:
  TENON_API explicit ConvTransposeNdImpl(ConvTransposeOptions<D> options);
  TENON_API void reset() override;
  /// Draws weight and bias anew: Kaiming uniform with a = sqrt(5), bias from U(-b, b), b = 1 / sqrt(fan in).
  TENON_API void reset_parameters();
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// (N, in_channels, …) or (in_channels, …) -> (N, out_channels, …) or (out_channels, …): functional::
  /// conv_transpose1d() and its likes. `output_size` (spatial sizes, or all of them) settles what a stride above 1
  /// leaves open. Throws Error for sizes that do not fit, and a padding mode other than kZeros.
  TENON_API Tensor forward(const Tensor& input,
                           const std::optional<std::vector<std::int64_t>>& output_size = std::nullopt);

  ConvTransposeOptions<D> options;
  Tensor weight;  ///< (in_channels, out_channels / groups, kernel…)
  Tensor bias;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
};

#define TENON_CONV(D)                                                                                            \
  class TENON_EXPORT Conv##D##dImpl : public ConvNdImpl<D, Conv##D##dImpl> {                                     \
   public:                                                                                                       \
    Conv##D##dImpl(std::int64_t in_channels, std::int64_t out_channels, ExpandingArray<D> kernel_size)           \
        : Conv##D##dImpl(ConvOptions<D>(in_channels, out_channels, std::move(kernel_size))) {}                   \
    explicit Conv##D##dImpl(ConvOptions<D> options) : ConvNdImpl<D, Conv##D##dImpl>(std::move(options)) {}       \
  };                                                                                                             \
  extern template class ConvNdImpl<D, Conv##D##dImpl>;                                                           \
  TENON_LIBRARY_MODULE(Conv##D##d);                                                                              \
  class TENON_EXPORT ConvTranspose##D##dImpl : public ConvTransposeNdImpl<D, ConvTranspose##D##dImpl> {          \
   public:                                                                                                       \
    ConvTranspose##D##dImpl(std::int64_t in_channels, std::int64_t out_channels, ExpandingArray<D> kernel_size)  \
        : ConvTranspose##D##dImpl(ConvTransposeOptions<D>(in_channels, out_channels, std::move(kernel_size))) {} \
    explicit ConvTranspose##D##dImpl(ConvTransposeOptions<D> options)                                            \
        : ConvTransposeNdImpl<D, ConvTranspose##D##dImpl>(std::move(options)) {}                                 \
  };                                                                                                             \
  extern template class ConvTransposeNdImpl<D, ConvTranspose##D##dImpl>;                                         \
  TENON_LIBRARY_MODULE(ConvTranspose##D##d);
TENON_CONV(1)
TENON_CONV(2)
TENON_CONV(3)
#undef TENON_CONV

}  // namespace tenon::nn
