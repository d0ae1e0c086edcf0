// One kernel call that updates a whole list of tensors.
#include <tenon/optim/support/fused.h>

#include <tenon/dispatch/call.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

namespace tenon::optim {

void call_fused(std::string_view kernel, const std::vector<std::vector<Tensor>>& outputs,
                const std::vector<Tensor>& gradients, const void* attributes) {
  if (gradients.empty()) return;
  std::vector<TensorView> written, read;
  for (const auto& list : outputs) {
    for (const Tensor& tensor : list) written.push_back(tensor.defined() ? tensor.impl().view() : undefined_view());
  }
  for (const Tensor& gradient : gradients) read.push_back(gradient.impl().view());
  call_kernel(intern_operator(kernel), gradients[0].impl().storage().state(), written, read, attributes);
  for (const auto& list : outputs) {
    for (const Tensor& tensor : list) {
      if (tensor.defined()) tensor.impl().bump_version();
    }
  }
}

Tensor matching_gradient(const Tensor& parameter) {
  const Tensor& gradient = parameter.grad();
  if (gradient.scalar_type() != parameter.scalar_type()) {
    throw Error("a parameter's gradient has another dtype than the parameter");
  }
  if (gradient.strides() == parameter.strides()) return gradient;
  PurposeGuard purpose(Purpose::kGradient);
  Tensor copy = tenon::empty_like(parameter);
  copy.copy_(gradient);
  return copy;
}

}  // namespace tenon::optim
