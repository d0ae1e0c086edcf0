// Connectionist temporal classification (Graves et al., 2006).
#pragma once

#include <tenon/tensor/tensor.h>

#include <cstdint>

namespace tenon {

/// log_probabilities (T, N, C) or (T, C); targets (N, S) padded, or one line of all targets; lengths (N). The negative
/// log of the probability of all alignments of each target, reduced as at::Reduction says (the mean is of losses per
/// target element). The gradient is that with respect to the log probabilities as free variables. Throws Error for
/// lengths that are no integers, exceed T or the targets given, and for a blank or target that is no class.
TENON_API Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets, const Tensor& input_lengths,
                          const Tensor& target_lengths, std::int64_t blank = 0, std::int64_t reduction = 1,
                          bool zero_infinity = false);
TENON_API Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets, IntArrayRef input_lengths,
                          IntArrayRef target_lengths, std::int64_t blank = 0, std::int64_t reduction = 1,
                          bool zero_infinity = false);

}  // namespace tenon
