// Broadcast, scatter, gather and reduce. The devices get their work one after another from this thread, so that equal
// runs have equal bits; they work at the same time where they are asynchronous.
#include <tenon/train/step/data_parallel.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/parallel.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/train/model_on_device.h>

namespace tenon::train {

DataParallel::DataParallel(const ExperimentConfig& config, const ModelRequest& request, const Model& first)
    : models_({first}),
      devices_(config.devices),
      loss_on_first_(config.section("train").text("parallel_loss") == "first" && !first.loss) {
  const RandomStates random = random_states();  // as if there were no copies
  for (std::size_t i = 1; i < devices_.size(); ++i) {
    ExperimentConfig there = config;
    there.device = devices_[i];
    models_.push_back(make_model_on_device(there, request));
  }
  set_random_states(random);
}

void DataParallel::broadcast() const {
  NoGradGuard no_grad;
  const auto copy_all = [](const std::vector<Tensor>& from, const std::vector<Tensor>& to) {
    for (std::size_t i = 0; i < from.size(); ++i) Tensor(to[i]).copy_(from[i], /*non_blocking=*/true);
  };
  for (std::size_t i = 1; i < models_.size(); ++i) {
    copy_all(models_[0].module->parameters(), models_[i].module->parameters());
    copy_all(models_[0].module->buffers(), models_[i].module->buffers());
    models_[i].module->train(models_[0].module->is_training());
  }
}

std::vector<Batch> DataParallel::scatter(const Batch& batch) const {
  PurposeGuard purpose(Purpose::kData);
  const autograd::Scatter scatter(devices_);
  const auto inputs = scatter.apply({batch.input}), targets = scatter.apply({batch.target});
  std::vector<Batch> parts;
  for (std::size_t i = 0; i < inputs.size(); ++i) parts.push_back({.input = inputs[i], .target = targets[i]});
  return parts;
}

Tensor DataParallel::forward(const Batch& batch) {
  broadcast();
  const std::vector<Batch> parts = scatter(batch);
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < parts.size(); ++i) outputs.push_back(models_[i].forward(parts[i].input));
  return autograd::Gather(devices_.front()).apply(outputs).front();
}

Tensor DataParallel::mean_loss(const Batch& batch,
                               const std::function<Tensor(const Model& model, const Batch& part)>& loss) {
  broadcast();
  const std::vector<Batch> parts = scatter(batch);
  const auto all = static_cast<double>(batch.input.size(0));
  std::vector<Tensor> losses;
  for (std::size_t i = 0; i < parts.size(); ++i)
    losses.push_back(loss(models_[i], parts[i]) * (static_cast<double>(parts[i].input.size(0)) / all));
  return autograd::Gather(devices_.front()).apply(losses).front().sum();
}

void DataParallel::reduce_gradients() {
  NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kGradient);
  const std::vector<Tensor> parameters = models_[0].module->parameters();
  for (std::size_t i = 1; i < models_.size(); ++i) {
    const std::vector<Tensor> copies = models_[i].module->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      Tensor& there = copies[p].mutable_grad();
      if (!there.defined()) continue;
      Tensor& sum = parameters[p].mutable_grad();
      const Tensor here = there.to(devices_.front(), there.scalar_type());
      there = Tensor();
      if (sum.defined()) {
        sum.add_(here);
      } else {
        sum = here;
      }
    }
  }
}

void DataParallel::forget_gradients() const {
  for (const Model& copy : copies()) copy.module->zero_grad(/*set_to_none=*/true);
}

}  // namespace tenon::train
