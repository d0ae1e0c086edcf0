// Masters in float32 of parameters in 16 bits.
#include <tenon/optim/master_weights.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

namespace tenon::optim {
namespace {

bool has_16_bits(const Tensor& tensor) { return tensor.scalar_type() == kFloat16 || tensor.scalar_type() == kBFloat16; }

}  // namespace

MasterWeights::MasterWeights(std::vector<Tensor> parameters) : parameters_(std::move(parameters)) {
  const NoGradGuard no_grad;
  const PurposeGuard purpose(Purpose::kOptimizerState);
  for (const Tensor& parameter : parameters_) {
    masters_.push_back(has_16_bits(parameter) ? parameter.detach().to(kFloat32).set_requires_grad(true) : parameter);
  }
}

void MasterWeights::take_gradients() {
  const NoGradGuard no_grad;
  const PurposeGuard purpose(Purpose::kGradient);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (masters_[i].is_same(parameters_[i])) continue;
    Tensor& gradient = parameters_[i].mutable_grad();
    masters_[i].mutable_grad() = gradient.defined() ? gradient.to(kFloat32) : Tensor();
    gradient.reset();
  }
}

void MasterWeights::give_values() {
  const NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!masters_[i].is_same(parameters_[i])) parameters_[i].copy_(masters_[i]);
  }
}

}  // namespace tenon::optim
