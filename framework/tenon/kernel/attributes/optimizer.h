// Attributes of the fused optimiser steps: one call for a whole list of tensors.
#pragma once

#include <tenon/kernel/attributes/replay.h>

#include <cstdint>

namespace tenon {

/// sgd_step: g = grad (negated when maximize) + weight_decay * p; buffer = first_step ? g : momentum * buffer +
/// (1 - dampening) * g; g = nesterov ? g + momentum * buffer : buffer; p -= learning_rate * g.
struct SgdAttributes {
  double learning_rate = 0.01;
  double momentum = 0;  ///< 0: no buffers are passed
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first_step = false;
  bool maximize = false;
};

/// adam_step, as torch.optim.Adam and AdamW (decoupled): m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g g;
/// denominator = sqrt(amsgrad ? max(vmax, v) : v) / sqrt(1 - b2^step) + eps; p -= lr / (1 - b1^step) * m / denominator.
struct AdamAttributes {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  ///< p *= 1 - lr * weight_decay first, instead of g += weight_decay * p
  bool amsgrad = false;
  std::int64_t step = 1;                   ///< counts from 1
  const ReplayCounters* replay = nullptr;  ///< adds to step; null: nothing does
};

}  // namespace tenon
