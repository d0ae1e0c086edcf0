// Optimisers by name.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/optim/optimizer.h>

#include <memory>
#include <string>
#include <vector>

namespace tenon::train {

/// Those that `train.optimizer` may name.
TENON_API std::vector<std::string> optimizer_names();

/// As the section [train] says.
TENON_API std::unique_ptr<optim::Optimizer> make_optimizer(const Options& train, std::vector<Tensor> parameters);

/// What it will remember of the parameters, in bytes.
TENON_API std::int64_t state_bytes(const Options& train, const std::vector<Tensor>& parameters);

}  // namespace tenon::train
