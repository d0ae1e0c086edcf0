// Connectionist temporal classification (Graves et al., 2006).
#pragma once

#include <tenon/tensor/tensor.h>

#include <cstdint>

namespace tenon {

/// log_probabilities (T, N, C) or (T, C); targets (N, S) padded, or one line of all targets; lengths (N). The negative
/// log of the probability of all alignments of each target, reduced as at::Reduction says (the mean is of losses per
/// target element). zero_infinity turns infinite losses, of targets too long for their input, and their gradients into
/// 0. As in PyTorch the gradient takes log_probabilities for log_softmax()'s: it is exp(log_probabilities) less the
/// probability of each label at each step given the target, and cannot be differentiated again. Throws Error for
/// lengths that are not integers, exceed T or the targets given, for a blank or target that is not a class, and for an
/// unknown reduction.
TENON_API Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets, const Tensor& input_lengths,
                          const Tensor& target_lengths, std::int64_t blank = 0, std::int64_t reduction = 1,
                          bool zero_infinity = false);
TENON_API Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets, IntArrayRef input_lengths,
                          IntArrayRef target_lengths, std::int64_t blank = 0, std::int64_t reduction = 1,
                          bool zero_infinity = false);

}  // namespace tenon
