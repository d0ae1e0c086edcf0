// The optimiser inside backward: a parameter is updated as soon as its gradient is there, and the gradient goes at
// once. Source: PyTorch's tutorial "How to save memory by fusing the optimizer step into the backward pass".
#pragma once

#include <tenon/autograd/post_accumulate.h>
#include <tenon/optim/optimizer.h>

#include <functional>
#include <vector>

namespace tenon::optim {

/// While it lives, each backward() of a loss updates the parameters that it reaches and frees their gradients, so that
/// never more than a few of them are there: step() and zero_grad() have nothing left to do. The result is that of
/// step() after backward(), to the last bit.
///
/// It suits neither gradients that add up over several backward() nor what looks at all gradients before the update:
/// clipping by their norm, the search for infinities of a scaled loss.
class TENON_EXPORT OptimizerInBackward {
 public:
  using Update = std::function<void(const Tensor& parameter)>;

  /// Of all parameters that require a gradient; the optimiser is borrowed. `update` stands for
  /// optimizer.step_parameter(). Parameters that move to other memory afterwards (Module::to) are not updated.
  TENON_API explicit OptimizerInBackward(Optimizer& optimizer, Update update = {});
  /// Of those of `parameters` that require a gradient, where `update` knows an optimiser that has others in their
  /// place: MasterWeights::step_parameter().
  TENON_API OptimizerInBackward(const std::vector<Tensor>& parameters, const Update& update);

 private:
  void watch(const std::vector<Tensor>& parameters, const Update& update);

  std::vector<autograd::PostAccumulateHandle> hooks_;
};

}  // namespace tenon::optim
