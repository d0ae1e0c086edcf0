// Optimisers and learning rates by name.
#pragma once

#include <tenon/core/options.h>
#include <tenon/optim/optimizer.h>

#include <memory>
#include <string>
#include <vector>

namespace tenon::train {

/// Those that `train.optimizer` may name.
std::vector<std::string> optimizer_names();

/// As the section [train] says.
std::unique_ptr<optim::Optimizer> make_optimizer(const Options& train, std::vector<Tensor> parameters);

/// What it will remember of the parameters, in bytes.
std::int64_t state_bytes(const Options& train, const std::vector<Tensor>& parameters);

/// The learning rate of a step, from 0, out of `steps`.
double scheduled_lr(const Options& train, std::int64_t step, std::int64_t steps);

}  // namespace tenon::train
