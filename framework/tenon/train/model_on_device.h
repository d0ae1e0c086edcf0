// A model whose parameters are where the experiment runs.
#pragma once

#include <tenon/runtime/config/experiment.h>
#include <tenon/train/model.h>

namespace tenon::train {

/// Seeds the generators with train.seed and makes the model on the experiment's device. Parameters are drawn on the
/// host, so that every device starts from the same ones; a device that has addresses alone gets their sizes. Throws
/// what make_model() throws, and OutOfMemory. `stays_on_host`: it is left where it was drawn, for who divides it.
Model make_model_on_device(const ExperimentConfig& config, const ModelRequest& request, bool stays_on_host = false);

/// While it lives, a device that has addresses alone stands in for the host: parameters are asked for as they are made
/// there, in the order of the constructors. Blocks are cached otherwise in another order, and more may be reserved.
class MakesAsOnHost {
 public:
  MakesAsOnHost();
  ~MakesAsOnHost();
  MakesAsOnHost(const MakesAsOnHost&) = delete;
  MakesAsOnHost& operator=(const MakesAsOnHost&) = delete;
  static bool is_on();
};

/// How many elements of its parameters learn.
double trained_elements(const nn::Module& module);

}  // namespace tenon::train
