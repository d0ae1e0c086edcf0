// Gradient checkpointing: a part of the forward pass keeps only its inputs, and runs again when backward needs it.
// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016); semantics of torch.utils.checkpoint.
#pragma once

#include <tenon/autograd/node.h>

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Whether the result that an operator of the part has just given is kept, so that the recomputation does not compute
/// it: asked in the first run, for each call of one of keepable_operators() by its name in PyTorch.
using CheckpointPolicy = std::function<bool(std::string_view op)>;

/// Operators whose results a policy may keep: products of matrices (a linear layer is "addmm", without a bias "mm"),
/// "convolution", "scaled_dot_product_attention", softmax, normalisations, poolings and every pointwise operator. All
/// else is computed again: views and copies, reductions, random numbers, and what a recurrent layer is made of. Of an
/// operator that is made of others the policy is asked for each of these.
TENON_API const std::vector<std::string>& keepable_operators();

/// Keeps each result of these. Throws Error for a name that is none of keepable_operators().
TENON_API CheckpointPolicy keep_results_of(std::vector<std::string> operators);

struct CheckpointOptions {
  /// true: backward runs a backward of its own for the part; at least one input must require grad. false: the tensors
  /// that the part would have saved are recomputed when the first of them is asked for; works with autograd::grad too.
  bool use_reentrant = false;
  /// The recomputation draws the same random numbers.
  bool preserve_rng_state = true;
  /// What is kept beside the inputs, not with use_reentrant; empty: nothing. Gradients are the same to the bit. What is
  /// kept must not be written to afterwards: backward then throws Error.
  CheckpointPolicy keep{};
};

using CheckpointFunction = std::function<autograd::variable_list(const autograd::variable_list& inputs)>;

/// Running statistics (batch_norm) are updated by the first run alone, so that a model trained with checkpointing is
/// the model trained without it to the bit; torch.utils.checkpoint updates them twice.
TENON_API autograd::variable_list checkpoint(CheckpointFunction function, const autograd::variable_list& inputs,
                                             CheckpointOptions options = {});

/// One tensor in, one out.
template <class Function>
requires std::is_invocable_r_v<Tensor, Function&, Tensor> Tensor checkpoint(Function function, const Tensor& input,
                                                                            CheckpointOptions options = {}) {
  return checkpoint(CheckpointFunction([function = std::move(function)](const autograd::variable_list& inputs) mutable
                                       -> autograd::variable_list { return {function(inputs[0])}; }),
                    autograd::variable_list{input}, options)[0];
}

/// Whether this thread is in the second run of a checkpointed part: what a module remembers from step to step must not
/// change then.
TENON_API bool is_recomputing() noexcept;

/// Runs the functions one after the other in `segments` parts, all but the last checkpointed.
TENON_API Tensor checkpoint_sequential(const std::vector<std::function<Tensor(Tensor)>>& functions,
                                       std::size_t segments, const Tensor& input, CheckpointOptions options = {});

}  // namespace tenon
