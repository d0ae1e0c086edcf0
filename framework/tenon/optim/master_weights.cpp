// Masters in float32 of parameters in 16 bits.
#include <tenon/optim/master_weights.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>

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
    if (is_own(i)) continue;
    Tensor& gradient = parameters_[i].mutable_grad();
    masters_[i].mutable_grad() = gradient.defined() ? gradient.to(kFloat32) : Tensor();
    gradient.reset();
  }
}

void MasterWeights::give_values() {
  const NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_own(i)) parameters_[i].copy_(masters_[i]);
  }
}

void MasterWeights::step(Optimizer& optimizer) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) step_at(i, optimizer);
}

void MasterWeights::step_parameter(Optimizer& optimizer, const Tensor& parameter) const {
  const auto found = std::ranges::find_if(parameters_, [&](const Tensor& known) { return known.is_same(parameter); });
  if (found == parameters_.end()) throw Error("step_parameter: the tensor is none of the parameters with masters");
  step_at(static_cast<std::size_t>(found - parameters_.begin()), optimizer);
}

void MasterWeights::step_at(std::size_t i, Optimizer& optimizer) const {
  if (is_own(i)) return optimizer.step_parameter(masters_[i]);
  const Tensor& gradient = parameters_[i].grad();
  if (!gradient.defined()) return;
  const NoGradGuard no_grad;
  {
    const PurposeGuard purpose(Purpose::kGradient);
    masters_[i].mutable_grad() = gradient.to(kFloat32);
  }
  optimizer.step_parameter(masters_[i]);
  masters_[i].mutable_grad().reset();
  parameters_[i].copy_(masters_[i]);
}

void MasterWeights::save(OutputArchive& archive) const {
  for (std::size_t i = 0; i < masters_.size(); ++i)
    if (!is_own(i)) archive.write(std::to_string(i), masters_[i], /*is_buffer=*/true);
}

void MasterWeights::load(InputArchive& archive) {
  const NoGradGuard no_grad;
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    if (is_own(i)) continue;
    Tensor saved;
    if (!archive.try_read(std::to_string(i), saved, /*is_buffer=*/true) || saved.sizes() != masters_[i].sizes())
      throw Error(fmt::format("master weights: number {} of {} is not there, or of another shape", i, masters_.size()));
    masters_[i].copy_(saved);
  }
}

}  // namespace tenon::optim
