// Padding as modules. Numbers come in pairs (before, after), the last dimension first.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/expanding_array.h>

#include <cstddef>

namespace tenon::nn {

template <std::size_t D>
struct ReflectionPadOptions {
  ReflectionPadOptions(ExpandingArray<D * 2> padding) : padding_(padding) {}  // NOLINT: as in libtorch
  TENON_ARG(ExpandingArray<D * 2>, padding);  ///< amounts before and after, the last dim first
};
template <std::size_t D>
struct ReplicationPadOptions {
  ReplicationPadOptions(ExpandingArray<D * 2> padding) : padding_(padding) {}  // NOLINT
  TENON_ARG(ExpandingArray<D * 2>, padding);  ///< amounts before and after, the last dim first
};
template <std::size_t D>
struct ConstantPadOptions {
  ConstantPadOptions(ExpandingArray<D * 2> padding, double value) : padding_(padding), value_(value) {}
  TENON_ARG(ExpandingArray<D * 2>, padding);  ///< amounts before and after, the last dim first
  TENON_ARG(double, value);                   ///< what is put there
};
template <std::size_t D>
struct ZeroPadOptions {
  ZeroPadOptions(ExpandingArray<D * 2> padding) : padding_(padding) {}  // NOLINT
  TENON_ARG(ExpandingArray<D * 2>, padding);  ///< amounts before and after, the last dim first
};

#define TENON_PAD_CLASS(Kind, D)                                                                                     \
  using Kind##D##dOptions = Kind##Options<D>;                                                                        \
  class TENON_EXPORT Kind##D##dImpl : public Cloneable<Kind##D##dImpl> {                                             \
   public:                                                                                                           \
    explicit Kind##D##dImpl(ExpandingArray<D * 2> padding) : Kind##D##dImpl(Kind##D##dOptions(padding)) {}           \
    explicit Kind##D##dImpl(const Kind##D##dOptions& options) : options(options) {}                                  \
    void reset() override {}                                                                                         \
    TENON_API void pretty_print(std::ostream& stream) const override;                                                \
    /** (N, C, …) or (C, …) of D spatial dimensions, each longer by its padding: functional::pad(). Throws Error \
     * for fewer than D dims, and paddings that do not fit. */                                                       \
    TENON_API Tensor forward(const Tensor& input);                                                                   \
    Kind##D##dOptions options;                                                                                       \
  };                                                                                                                 \
  TENON_LIBRARY_MODULE(Kind##D##d);
TENON_PAD_CLASS(ReflectionPad, 1)
TENON_PAD_CLASS(ReflectionPad, 2)
TENON_PAD_CLASS(ReflectionPad, 3)
TENON_PAD_CLASS(ReplicationPad, 1)
TENON_PAD_CLASS(ReplicationPad, 2)
TENON_PAD_CLASS(ReplicationPad, 3)
TENON_PAD_CLASS(ZeroPad, 1)
TENON_PAD_CLASS(ZeroPad, 2)
TENON_PAD_CLASS(ZeroPad, 3)
#undef TENON_PAD_CLASS

#define TENON_PAD_CLASS(D)                                                                                          \
  using ConstantPad##D##dOptions = ConstantPadOptions<D>;                                                           \
  class TENON_EXPORT ConstantPad##D##dImpl : public Cloneable<ConstantPad##D##dImpl> {                              \
   public:                                                                                                          \
    ConstantPad##D##dImpl(ExpandingArray<D * 2> padding, double value)                                              \
        : ConstantPad##D##dImpl(ConstantPad##D##dOptions(padding, value)) {}                                        \
    explicit ConstantPad##D##dImpl(const ConstantPad##D##dOptions& options) : options(options) {}                   \
    void reset() override {}                                                                                        \
    TENON_API void pretty_print(std::ostream& stream) const override;                                               \
    /** At least D dims, of which the last D get longer by their padding, of one value: functional::pad(). Negative \
     * padding cuts. Throws Error for fewer dims. */                                                                \
    TENON_API Tensor forward(const Tensor& input);                                                                  \
    ConstantPad##D##dOptions options;                                                                               \
  };                                                                                                                \
  TENON_LIBRARY_MODULE(ConstantPad##D##d);
TENON_PAD_CLASS(1)
TENON_PAD_CLASS(2)
TENON_PAD_CLASS(3)
#undef TENON_PAD_CLASS

}  // namespace tenon::nn
