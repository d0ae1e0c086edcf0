// A model whose parameters are where the experiment runs.
#pragma once

#include <tenon/runtime/config/experiment.h>
#include <tenon/train/model.h>

namespace tenon::train {

/// Seeds the generators with train.seed and makes the model on the experiment's device. Parameters are drawn on the
/// host, so that every device starts from the same ones; a device that has addresses alone gets their sizes. Throws
/// what make_model() throws, and OutOfMemory. `stays_on_host`: it is left where it was drawn, for who divides it.
Model make_model_on_device(const ExperimentConfig& config, const ModelRequest& request, bool stays_on_host = false);

/// How many elements of its parameters learn.
double trained_elements(const nn::Module& module);

}  // namespace tenon::train
