// One kernel call that updates a whole list of tensors.
#include <tenon/optim/support/fused.h>

#include <tenon/dispatch/call.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

#include <algorithm>

namespace tenon::optim {

namespace {

void call_on_one_device(std::string_view kernel, const std::vector<std::vector<Tensor>>& outputs,
                        const std::vector<Tensor>& gradients, const void* attributes) {
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

/// Of a list that stands beside the gradients those whose gradient lies on that device.
std::vector<Tensor> on_device(const std::vector<Tensor>& list, const std::vector<Tensor>& gradients, Device device) {
  std::vector<Tensor> there;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (gradients[i].device() == device) there.push_back(list[i]);
  return there;
}

}  // namespace

void call_fused(std::string_view kernel, const std::vector<std::vector<Tensor>>& outputs,
                const std::vector<Tensor>& gradients, const void* attributes) {
  std::vector<Device> devices;  // in the order of their first parameters
  for (const Tensor& gradient : gradients)
    if (std::ranges::find(devices, gradient.device()) == devices.end()) devices.push_back(gradient.device());
  if (devices.size() == 1) return call_on_one_device(kernel, outputs, gradients, attributes);
  for (const Device device : devices) {
    std::vector<std::vector<Tensor>> there;
    for (const auto& list : outputs) there.push_back(on_device(list, gradients, device));
    call_on_one_device(kernel, there, on_device(gradients, gradients, device), attributes);
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
