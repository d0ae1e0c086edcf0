// What theory expects of a training step's memory and time, from closed forms: to stand beside what was measured.
#pragma once

#include <cstdint>

namespace tenon::train {

/// Activations that a model keeps for one example, in elements. A block's figure includes its input.
struct ActivationForm {
  double embedding = 0;  ///< before the first block
  double block = 0;
  double block_input = 0;
  std::int64_t blocks = 0;
  double head = 0;            ///< after the last block, up to the loss
  double computed_again = 0;  ///< by the backward of a block, beside what the block keeps
};

struct TheoryRequest {
  ActivationForm form;
  std::int64_t parameters = 0;       ///< elements
  std::int64_t head_parameters = 0;  ///< of those, what has its gradient before the first block's backward
  std::int64_t state_bytes = 0;      ///< of the optimiser
  std::int64_t data_bytes = 0;
  std::int64_t element_bytes = 4;
  std::int64_t batch_size = 1;
  std::int64_t micro_batches = 1;
  bool checkpoint = false;
  bool gradients_stay = false;  ///< zero_grad = "zero": they are there during the forward pass too
};

/// Bytes at their peaks; the time as a multiple of that of the plain step.
struct Theory {
  double activation_bytes = 0;
  double gradient_bytes = 0;
  double total_bytes = 0;  ///< of an allocator that neither rounds nor fragments
  double relative_time = 1;
};

/// Plain: every block's activations at the loss. Checkpointed: every block's input, and either the head's activations
/// or those of the one block that is computed again (Chen et al., 2016). Micro-batches divide the batch. A backward
/// pass costs two forward passes, a second forward pass one more of three.
Theory theory_of(const TheoryRequest& request);

}  // namespace tenon::train
