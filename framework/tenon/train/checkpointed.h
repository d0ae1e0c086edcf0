// A part of a model that checkpointing may run twice: the switch `train.checkpoint` in one place.
#pragma once

#include <tenon/autograd/checkpoint.h>

#include <utility>

namespace tenon::train {

/// part(x). With `checkpoint` only x is kept of what it computes, and backward runs it again.
template <class Part>
Tensor run_part(bool checkpoint, Part part, const Tensor& x) {
  return checkpoint ? tenon::checkpoint(std::move(part), x) : part(x);
}

}  // namespace tenon::train
