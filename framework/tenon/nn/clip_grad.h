// Gradients kept within bounds before a step.
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <vector>

namespace tenon::nn::utils {

/// Scales all gradients together so that their norm is at most max_norm; returns the norm before: 0 where no parameter
/// has a gradient, nan of tensors without values. A norm that is nan or infinite is an Error where error_if_nonfinite
/// is set; without it a nan norm makes every gradient nan, an infinite one makes finite elements 0 and infinite ones
/// nan, as in PyTorch.
TENON_API double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0,
                                 bool error_if_nonfinite = false);
TENON_API double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type = 2.0,
                                 bool error_if_nonfinite = false);
/// Clamps every element of the gradients to [-clip_value, clip_value]; a parameter without a gradient is left out.
TENON_API void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
TENON_API void clip_grad_value_(const Tensor& parameter, double clip_value);

}  // namespace tenon::nn::utils
