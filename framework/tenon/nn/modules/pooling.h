// Pooling: maximum, average, power average, adaptive, fractional, and the inverse of maximum pooling.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/expanding_array.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace tenon::nn {

template <std::size_t D>
struct MaxPoolOptions {
  MaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  TENON_ARG(ExpandingArray<D>, kernel_size);   ///< the size of a window
  TENON_ARG(ExpandingArray<D>, stride);        ///< the distance between windows; kernel_size unless set
  TENON_ARG(ExpandingArray<D>, padding) = 0;   ///< at both ends of each spatial dim
  TENON_ARG(ExpandingArray<D>, dilation) = 1;  ///< the distance between elements of a kernel
  TENON_ARG(bool, ceil_mode) = false;          ///< round the number of windows up
};
template <std::size_t D>
struct AvgPoolOptions {
  AvgPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  TENON_ARG(ExpandingArray<D>, kernel_size);  ///< the size of a window
  TENON_ARG(ExpandingArray<D>, stride);       ///< the distance between windows; kernel_size unless set
  TENON_ARG(ExpandingArray<D>, padding) = 0;  ///< at both ends of each spatial dim
  TENON_ARG(bool, ceil_mode) = false;         ///< round the number of windows up
  TENON_ARG(bool, count_include_pad) = true;  ///< whether padding counts in the mean
  /// Divides the sums in place of the number of elements.
  TENON_ARG(std::optional<std::int64_t>, divisor_override) = std::nullopt;
};
template <std::size_t D>
struct LPPoolOptions {
  LPPoolOptions(double norm_type, ExpandingArray<D> kernel_size)
      : norm_type_(norm_type), kernel_size_(kernel_size), stride_(kernel_size) {}
  TENON_ARG(double, norm_type);               ///< p of the p-norm
  TENON_ARG(ExpandingArray<D>, kernel_size);  ///< the size of a window
  TENON_ARG(ExpandingArray<D>, stride);       ///< the distance between windows; kernel_size unless set
  TENON_ARG(bool, ceil_mode) = false;         ///< round the number of windows up
};
/// An absent size keeps the input's.
template <std::size_t D>
struct AdaptivePoolOptions {
  using Size = std::conditional_t<D == 1, ExpandingArray<1>, ExpandingArrayWithOptionalElem<D>>;
  AdaptivePoolOptions(Size output_size) : output_size_(output_size) {}                                 // NOLINT
  AdaptivePoolOptions(std::int64_t output_size) : output_size_(output_size) {}                         // NOLINT
  AdaptivePoolOptions(const std::vector<std::int64_t>& output_size) : output_size_(output_size) {}     // NOLINT
  AdaptivePoolOptions(std::initializer_list<std::int64_t> output_size) : output_size_(output_size) {}  // NOLINT
  TENON_ARG(Size, output_size);  ///< the spatial sizes of the output
};
template <std::size_t D>
struct MaxUnpoolOptions {
  MaxUnpoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  TENON_ARG(ExpandingArray<D>, kernel_size);  ///< the size of a window
  TENON_ARG(ExpandingArray<D>, stride);       ///< the distance between windows; kernel_size unless set
  TENON_ARG(ExpandingArray<D>, padding) = 0;  ///< at both ends of each spatial dim
};
/// Graham, "Fractional max-pooling", 2014. Exactly one of output_size and output_ratio.
template <std::size_t D>
struct FractionalMaxPoolOptions {
  using RatioArray = ExpandingArray<D, double>;
  FractionalMaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}  // NOLINT
  TENON_ARG(ExpandingArray<D>, kernel_size);                                              ///< the size of a window
  TENON_ARG(std::optional<ExpandingArray<D>>, output_size) = std::nullopt;  ///< the spatial sizes of the output
  /// The output's sizes as shares of the input's, between 0 and 1.
  TENON_ARG(std::optional<RatioArray>, output_ratio) = std::nullopt;
  TENON_ARG(Tensor, _random_samples) = Tensor();  ///< (N, C, D) in [0, 1): where windows begin; drawn where undefined
};

// Of D spatial dimensions: (N, C, …) -> (N, C, windows…), or (C, …) without N. Errors are those of the functions.
#define TENON_POOL_CLASSES(D)                                                                                      \
  using MaxPool##D##dOptions = MaxPoolOptions<D>;                                                                  \
  class TENON_EXPORT MaxPool##D##dImpl : public Cloneable<MaxPool##D##dImpl> {                                     \
   public:                                                                                                         \
    MaxPool##D##dImpl(ExpandingArray<D> kernel_size) : options(kernel_size) {}                                     \
    explicit MaxPool##D##dImpl(const MaxPool##D##dOptions& options) : options(options) {}                          \
    void reset() override {}                                                                                       \
    TENON_API void pretty_print(std::ostream& stream) const override;                                              \
    /** Maxima over windows, in the input's dtype: functional::max_pool1d(), 2d, 3d. */                            \
    TENON_API Tensor forward(const Tensor& input);                                                                 \
    /** Also the position of each maximum in the flattened spatial dimensions of the input (int64). */             \
    TENON_API std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);                                \
    MaxPool##D##dOptions options;                                                                                  \
  };                                                                                                               \
  TENON_LIBRARY_MODULE(MaxPool##D##d);                                                                             \
  using AvgPool##D##dOptions = AvgPoolOptions<D>;                                                                  \
  class TENON_EXPORT AvgPool##D##dImpl : public Cloneable<AvgPool##D##dImpl> {                                     \
   public:                                                                                                         \
    AvgPool##D##dImpl(ExpandingArray<D> kernel_size) : options(kernel_size) {}                                     \
    explicit AvgPool##D##dImpl(const AvgPool##D##dOptions& options) : options(options) {}                          \
    void reset() override {}                                                                                       \
    TENON_API void pretty_print(std::ostream& stream) const override;                                              \
    /** Means over windows, of floating dtypes: functional::avg_pool1d(), 2d, 3d. */                               \
    TENON_API Tensor forward(const Tensor& input);                                                                 \
    AvgPool##D##dOptions options;                                                                                  \
  };                                                                                                               \
  TENON_LIBRARY_MODULE(AvgPool##D##d);                                                                             \
  using AdaptiveAvgPool##D##dOptions = AdaptivePoolOptions<D>;                                                     \
  class TENON_EXPORT AdaptiveAvgPool##D##dImpl : public Cloneable<AdaptiveAvgPool##D##dImpl> {                     \
   public:                                                                                                         \
    explicit AdaptiveAvgPool##D##dImpl(std::int64_t output_size) : options(output_size) {}                         \
    AdaptiveAvgPool##D##dImpl(AdaptivePoolOptions<D>::Size output_size) : options(output_size) {}                  \
    explicit AdaptiveAvgPool##D##dImpl(const AdaptiveAvgPool##D##dOptions& options) : options(options) {}          \
    void reset() override {}                                                                                       \
    TENON_API void pretty_print(std::ostream& stream) const override;                                              \
    /** Means over output_size windows, of floating dtypes: functional::adaptive_avg_pool1d(), 2d, 3d. */          \
    TENON_API Tensor forward(const Tensor& input);                                                                 \
    AdaptiveAvgPool##D##dOptions options;                                                                          \
  };                                                                                                               \
  TENON_LIBRARY_MODULE(AdaptiveAvgPool##D##d);                                                                     \
  using AdaptiveMaxPool##D##dOptions = AdaptivePoolOptions<D>;                                                     \
  class TENON_EXPORT AdaptiveMaxPool##D##dImpl : public Cloneable<AdaptiveMaxPool##D##dImpl> {                     \
   public:                                                                                                         \
    explicit AdaptiveMaxPool##D##dImpl(std::int64_t output_size) : options(output_size) {}                         \
    AdaptiveMaxPool##D##dImpl(AdaptivePoolOptions<D>::Size output_size) : options(output_size) {}                  \
    explicit AdaptiveMaxPool##D##dImpl(const AdaptiveMaxPool##D##dOptions& options) : options(options) {}          \
    void reset() override {}                                                                                       \
    TENON_API void pretty_print(std::ostream& stream) const override;                                              \
    /** Maxima over output_size windows: functional::adaptive_max_pool1d(), 2d, 3d. */                             \
    TENON_API Tensor forward(const Tensor& input);                                                                 \
    /** Also the position of each maximum in the flattened spatial dimensions of the input (int64). */             \
    TENON_API std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);                                \
    AdaptiveMaxPool##D##dOptions options;                                                                          \
  };                                                                                                               \
  TENON_LIBRARY_MODULE(AdaptiveMaxPool##D##d);                                                                     \
  using MaxUnpool##D##dOptions = MaxUnpoolOptions<D>;                                                              \
  class TENON_EXPORT MaxUnpool##D##dImpl : public Cloneable<MaxUnpool##D##dImpl> {                                 \
   public:                                                                                                         \
    MaxUnpool##D##dImpl(ExpandingArray<D> kernel_size) : options(kernel_size) {}                                   \
    explicit MaxUnpool##D##dImpl(const MaxUnpool##D##dOptions& options) : options(options) {}                      \
    void reset() override {}                                                                                       \
    TENON_API void pretty_print(std::ostream& stream) const override;                                              \
    /** input and indices of the same sizes, back to where the maxima were: functional::max_unpool1d(), 2d, 3d. */ \
    TENON_API Tensor forward(const Tensor& input, const Tensor& indices,                                           \
                             const std::optional<std::vector<std::int64_t>>& output_size = std::nullopt);          \
    MaxUnpool##D##dOptions options;                                                                                \
                                                                                                                   \
   protected:                                                                                                      \
    TENON_DECLARE_DEFAULT_ARGS()                                                                                   \
  };                                                                                                               \
  TENON_LIBRARY_MODULE(MaxUnpool##D##d);
TENON_POOL_CLASSES(1)
TENON_POOL_CLASSES(2)
TENON_POOL_CLASSES(3)
#undef TENON_POOL_CLASSES

// (N, C, …) -> (N, C, windows…), or (C, …) without N.
#define TENON_LP_POOL_CLASS(D)                                                                                  \
  using LPPool##D##dOptions = LPPoolOptions<D>;                                                                 \
  class TENON_EXPORT LPPool##D##dImpl : public Cloneable<LPPool##D##dImpl> {                                    \
   public:                                                                                                      \
    LPPool##D##dImpl(double norm_type, ExpandingArray<D> kernel_size) : options(norm_type, kernel_size) {}      \
    explicit LPPool##D##dImpl(const LPPool##D##dOptions& options) : options(options) {}                         \
    void reset() override {}                                                                                    \
    TENON_API void pretty_print(std::ostream& stream) const override;                                           \
    /** (sum of x^p over each window)^(1/p); integers give the default dtype: functional::lp_pool1d() to 3d. */ \
    TENON_API Tensor forward(const Tensor& input);                                                              \
    LPPool##D##dOptions options;                                                                                \
  };                                                                                                            \
  TENON_LIBRARY_MODULE(LPPool##D##d);
TENON_LP_POOL_CLASS(1)
TENON_LP_POOL_CLASS(2)
TENON_LP_POOL_CLASS(3)
#undef TENON_LP_POOL_CLASS

// (N, C, …) -> (N, C, output_size…), or (C, …) without N. Constructors throw Error unless exactly one of output_size
// and output_ratio is given.
#define TENON_FRACTIONAL_POOL_CLASS(D)                                                                 \
  using FractionalMaxPool##D##dOptions = FractionalMaxPoolOptions<D>;                                  \
  class TENON_EXPORT FractionalMaxPool##D##dImpl : public Cloneable<FractionalMaxPool##D##dImpl> {     \
   public:                                                                                             \
    FractionalMaxPool##D##dImpl(ExpandingArray<D> kernel_size)                                         \
        : FractionalMaxPool##D##dImpl(FractionalMaxPool##D##dOptions(kernel_size)) {}                  \
    TENON_API explicit FractionalMaxPool##D##dImpl(FractionalMaxPool##D##dOptions options);            \
    TENON_API void reset() override;                                                                   \
    TENON_API void pretty_print(std::ostream& stream) const override;                                  \
    /** Maxima over kernels at pseudo-random places: functional::fractional_max_pool2d(), 3d. */       \
    TENON_API Tensor forward(const Tensor& input);                                                     \
    /** Also the position of each maximum in the flattened spatial dimensions of the input (int64). */ \
    TENON_API std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);                    \
    FractionalMaxPool##D##dOptions options;                                                            \
    Tensor _random_samples;                                                                            \
  };                                                                                                   \
  TENON_LIBRARY_MODULE(FractionalMaxPool##D##d);
TENON_FRACTIONAL_POOL_CLASS(2)
TENON_FRACTIONAL_POOL_CLASS(3)
#undef TENON_FRACTIONAL_POOL_CLASS

}  // namespace tenon::nn
