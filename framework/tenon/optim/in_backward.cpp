// Updates from post-accumulate hooks.
#include <tenon/optim/in_backward.h>

#include <tenon/autograd/grad_mode.h>

namespace tenon::optim {

OptimizerInBackward::OptimizerInBackward(Optimizer& optimizer, Update update) {
  if (!update) update = [&optimizer](const Tensor& parameter) { optimizer.step_parameter(parameter); };
  for (const OptimizerParamGroup& group : optimizer.param_groups()) watch(group.params(), update);
}

OptimizerInBackward::OptimizerInBackward(const std::vector<Tensor>& parameters, const Update& update) {
  watch(parameters, update);
}

void OptimizerInBackward::watch(const std::vector<Tensor>& parameters, const Update& update) {
  for (const Tensor& parameter : parameters) {
    if (!parameter.requires_grad()) continue;
    hooks_.emplace_back(parameter, [update](const Tensor& ready) {
      const NoGradGuard no_grad;
      update(ready);
      ready.mutable_grad().reset();
    });
  }
}

}  // namespace tenon::optim
