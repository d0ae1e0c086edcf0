// Layers and what two of them share.
#include <tenon/train/parallel/layers.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

namespace tenon::train {

LayerImpl::LayerImpl(Function function, const Owned& owned) : function_(std::move(function)) {
  for (const auto& [name, module] : owned) register_module(name, module);
}

const Tensor& TiedWeight::on(Device device) {
  if (original_.device() == device) return original_;
  if (is_current_) return copy_;
  const NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kParameter);
  if (copy_.defined()) {
    copy_.detach().copy_(original_.detach());
  } else {
    copy_ = original_.detach().to(device, original_.scalar_type()).set_requires_grad(original_.requires_grad());
  }
  is_current_ = true;
  return copy_;
}

void TiedWeight::give_back() {
  is_current_ = false;  // the update changes the parameter
  if (!copy_.defined() || !copy_.grad().defined()) return;
  const NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kGradient);
  const Tensor gradient = copy_.grad().to(original_.device(), original_.scalar_type());
  copy_.mutable_grad() = Tensor();
  Tensor& sum = original_.mutable_grad();
  if (sum.defined()) {
    sum.add_(gradient);
  } else {
    sum = gradient;
  }
}

void TiedWeight::forget() {
  is_current_ = false;
  if (copy_.defined()) copy_.mutable_grad() = Tensor();
}

}  // namespace tenon::train
