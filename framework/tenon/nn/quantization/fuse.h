// Fusing: batch norms become part of the weights before them, and ReLU of the layers that it follows.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/module.h>

#include <string>
#include <vector>

namespace tenon::nn::quantization {

/// Paths of modules that run one after the other: {"conv1", "bn1", "relu1"}.
using Group = std::vector<std::string>;

/// Makes one layer of each group, in place: Conv1d to Conv3d or Linear, then a batch norm, a ReLU, or both. The batch
/// norm's running statistics go into weight and bias and its own tensors are given back; norm and ReLU then return
/// their input. The output stays, to rounding. Throws Error, with nothing changed, for modules in training mode, a path
/// that is not there, a batch norm without running statistics, and another order or kind of modules.
TENON_API void fuse_modules(Module& model, const std::vector<Group>& groups);

/// The groups that follow each other in the model's Sequentials.
TENON_API std::vector<Group> groups_of_sequentials(const Module& model);

}  // namespace tenon::nn::quantization
