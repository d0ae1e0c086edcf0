// Optimisers and learning rates by name.
#include <tenon/train/optimizers.h>

#include <tenon/optim/adagrad.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/rmsprop.h>
#include <tenon/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tenon::train {

std::unique_ptr<optim::Optimizer> make_optimizer(const Options& train, std::vector<Tensor> parameters) {
  const std::string& name = train.text("optimizer");
  const double lr = train.real("lr"), decay = train.real("weight_decay");
  if (name == "sgd") {
    return std::make_unique<optim::SGD>(std::move(parameters),
                                        optim::SGDOptions(lr).momentum(train.real("momentum")).weight_decay(decay));
  }
  if (name == "adam") {
    return std::make_unique<optim::Adam>(std::move(parameters), optim::AdamOptions(lr).weight_decay(decay));
  }
  if (name == "rmsprop") {
    return std::make_unique<optim::RMSprop>(
        std::move(parameters), optim::RMSpropOptions(lr).momentum(train.real("momentum")).weight_decay(decay));
  }
  if (name == "adagrad") {
    return std::make_unique<optim::Adagrad>(std::move(parameters), optim::AdagradOptions(lr).weight_decay(decay));
  }
  return std::make_unique<optim::AdamW>(std::move(parameters), optim::AdamWOptions(lr).weight_decay(decay));
}

std::int64_t state_bytes(const Options& train, const std::vector<Tensor>& parameters) {
  const std::string& name = train.text("optimizer");
  const std::int64_t momentum = train.real("momentum") > 0 ? 1 : 0;
  std::int64_t tensors = 2;  // adam, adamw: two moments
  if (name == "sgd") tensors = momentum;
  if (name == "rmsprop") tensors = 1 + momentum;
  if (name == "adagrad") tensors = 1;
  std::int64_t bytes = 0;
  for (const Tensor& parameter : parameters) bytes += tensors * static_cast<std::int64_t>(parameter.nbytes());
  return bytes;
}

double scheduled_lr(const Options& train, std::int64_t step, std::int64_t steps) {
  const double lr = train.real("lr");
  const std::int64_t warmup = train.integer("schedule_warmup");
  if (step < warmup) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const double done =
      static_cast<double>(step - warmup) / static_cast<double>(std::max<std::int64_t>(steps - warmup, 1));
  const std::string& course = train.text("schedule");
  if (course == "cosine") return lr * 0.5 * (1 + std::cos(std::numbers::pi * std::min(done, 1.0)));
  if (course == "linear") return lr * (1 - std::min(done, 1.0));
  return lr;
}

}  // namespace tenon::train
