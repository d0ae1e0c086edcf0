// Functional dropout: F::dropout(x, F::DropoutFuncOptions().p(0.3).training(is_training())).
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/arg.h>
#include <tenon/tensor/tensor.h>

namespace tenon::nn::functional {

struct DropoutFuncOptions {
  TENON_ARG(double, p) = 0.5;        ///< the probability that an element becomes 0
  TENON_ARG(bool, training) = true;  ///< whether it is training: evaluation otherwise
  TENON_ARG(bool, inplace) = false;  ///< whether the input is overwritten
};
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;
struct AlphaDropoutFuncOptions {
  TENON_ARG(double, p) = 0.5;         ///< the probability that an element becomes 0
  TENON_ARG(bool, training) = false;  ///< whether it is training: evaluation otherwise
  TENON_ARG(bool, inplace) = false;   ///< whether the input is overwritten
};
using FeatureAlphaDropoutFuncOptions = AlphaDropoutFuncOptions;

/// In training elements become 0 with probability p, the others are scaled by 1 / (1 - p); any sizes. Throws Error for
/// a p outside of 0 to 1; so do the others.
TENON_API Tensor dropout(Tensor input, const DropoutFuncOptions& options = {});
/// dropout() of whole channels of (N, C, …). Throws Error below 2 dims.
TENON_API Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& options = {});
/// dropout2d() under another name: whole channels of (N, C, D, H, W).
TENON_API Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& options = {});
/// In training elements become SELU's lowest value, and all are scaled so that mean and variance stay; any sizes.
/// Klambauer et al., "Self-normalizing neural networks", 2017.
TENON_API Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& options = {});
/// alpha_dropout() of whole channels of (N, C, …).
TENON_API Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& options = {});

namespace detail {
TENON_API Tensor dropout(Tensor input, double p, bool training, bool inplace);
TENON_API Tensor dropout2d(Tensor input, double p, bool training, bool inplace);
TENON_API Tensor dropout3d(Tensor input, double p, bool training, bool inplace);
TENON_API Tensor alpha_dropout(Tensor input, double p, bool training, bool inplace);
TENON_API Tensor feature_alpha_dropout(Tensor input, double p, bool training, bool inplace);
}  // namespace detail

}  // namespace tenon::nn::functional
