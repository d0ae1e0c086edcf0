// Dropout in its forms: single elements, whole channels, and the alpha variants that keep mean and variance of SELU
// networks.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/arg.h>

namespace tenon::nn {

struct DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}  // NOLINT: as in libtorch
  TENON_ARG(double, p) = 0.5;                ///< the probability that an element becomes 0
  TENON_ARG(bool, inplace) = false;          ///< whether the input is overwritten
};
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;
using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;

/// What the forms share. Throws Error for a probability outside [0, 1].
template <class Derived>
class DropoutBase : public Cloneable<Derived> {
 public:
  explicit DropoutBase(double p) : DropoutBase(DropoutOptions(p)) {}
  explicit DropoutBase(const DropoutOptions& options = {}) : options(options) { DropoutBase::reset(); }
  void reset() override {
    if (options.p() < 0 || options.p() > 1) {
      throw Error("dropout probability has to be between 0 and 1, but got " + std::to_string(options.p()));
    }
  }

  DropoutOptions options;
};

// Each gives the input's sizes and dtype. Outside of training the input itself is the result.
#define TENON_DROPOUT(Name)                                           \
  class TENON_EXPORT Name##Impl : public DropoutBase<Name##Impl> {    \
   public:                                                            \
    using DropoutBase<Name##Impl>::DropoutBase;                       \
    TENON_API void pretty_print(std::ostream& stream) const override; \
    TENON_API Tensor forward(Tensor input);                           \
  };                                                                  \
  TENON_LIBRARY_MODULE(Name);
/// In training each element is 0 with probability p, and else divided by 1 - p. Srivastava et al., 2014.
TENON_DROPOUT(Dropout)
/// Dropout of whole channels of (N, C, H, W). Throws Error below 2 dims.
TENON_DROPOUT(Dropout2d)
/// Dropout of whole channels of (N, C, D, H, W). Throws Error below 2 dims.
TENON_DROPOUT(Dropout3d)
/// In training elements become SELU's lowest value, and all are scaled so that mean and variance stay. Klambauer et
/// al., 2017.
TENON_DROPOUT(AlphaDropout)
/// AlphaDropout of whole channels of (N, C, …). Throws Error below 2 dims.
TENON_DROPOUT(FeatureAlphaDropout)
#undef TENON_DROPOUT

}  // namespace tenon::nn
