// The output layer and the loss in one, by chunks: the logits of a whole batch are never there.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/arg.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>

namespace tenon::nn::functional {

struct LinearCrossEntropyFuncOptions {
  TENON_ARG(Tensor, bias) = {};                  ///< (C), of the linear map; undefined for none
  TENON_ARG(std::int64_t, chunks) = 8;           ///< parts of the samples, one after the other
  TENON_ARG(std::int64_t, ignore_index) = -100;  ///< the class that counts for nothing
  TENON_ARG(bool, mean) = true;                  ///< over the samples that count; else their sum
  TENON_ARG(double, label_smoothing) = 0.0;      ///< the share of each target that all classes share, 0 to 1
};

/// cross_entropy(linear(input, weight, bias), target): input (…, in), weight (C, in), target (…) of classes. Of the
/// logits, and of their gradient, one chunk is there at a time; none is kept for backward, which computes them again:
/// 2 N C numbers become 2 N C / chunks, for one more product with the weight. Where PyTorch's function of this name
/// takes gradients in its forward pass, here backward does, so that it suits a scaled loss. Sums over chunks are
/// rounded otherwise than one over all. Throws Error where the sizes do not fit, for fewer than one chunk, and for a
/// second derivative.
TENON_API Tensor linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& target,
                                      const LinearCrossEntropyFuncOptions& options = {});

}  // namespace tenon::nn::functional
