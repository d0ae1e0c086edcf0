// Optimisers by name.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/optim/optimizer.h>
#include <tenon/train/theory.h>

#include <memory>
#include <string>
#include <vector>

namespace tenon::train {

/// Those that `train.optimizer` may name.
TENON_API std::vector<std::string> optimizer_names();

/// As the section [train] says, with its states where and in which format it says.
TENON_API std::unique_ptr<optim::Optimizer> make_optimizer(const Options& train, std::vector<Tensor> parameters);

/// What of a step waits in host memory: `train.offload`.
struct Offload {
  bool activations = false;
  bool optimizer = false;
};
TENON_API Offload offload_of(const Options& train);

/// Whether it remembers anything of a parameter.
bool remembers(const Options& train);

/// What it will remember of the parameters.
TENON_API StateBytes state_bytes(const Options& train, const std::vector<Tensor>& parameters);

}  // namespace tenon::train
