// What theory expects of a training step's memory and time, from closed forms: to stand beside what was measured.
#pragma once

#include <cstdint>

namespace tenon::train {

/// Activations of one example, in elements. A block's figure includes its input.
struct ActivationForm {
  double embedding = 0;  ///< before the first block
  double block = 0;      ///< kept for its backward
  double block_input = 0;
  std::int64_t blocks = 0;
  double head = 0;          ///< after the last block, up to the loss
  double passing = 0;       ///< in a block's forward pass beside what it keeps, at most
  double head_passing = 0;  ///< gone when the loss is there
};

/// Gradients that pass, in elements of one example, and those of parameters, in elements.
struct GradientForm {
  double passing = 0;               ///< through a block's backward, at most
  double first = 0;                 ///< of its parameters, what has its gradient then
  double beside_largest = 0;        ///< pass while the block's largest parameter gets its gradient
  double largest = 0;               ///< parameter of a block
  double late_passing = 0;          ///< most that passes when nearly all of a block's parameters have their gradients
  double late = 0;                  ///< of its parameters, what has its gradient then
  double head_passing = 0;          ///< from the loss to the output layer
  double embedding = 0;             ///< parameters': from both ends of the model, before they are added up
  double head_parameters = 0;       ///< have their gradient before the last block's backward begins
  double block_parameters = 0;      ///< of each block
  double embedding_parameters = 0;  ///< that get their gradient behind the first block
};

/// What an optimiser remembers, in bytes.
struct StateBytes {
  std::int64_t device = 0;   ///< between updates
  std::int64_t host = 0;     ///< so
  std::int64_t update = 0;   ///< on the device besides, while the largest parameter is updated
  std::int64_t largest = 1;  ///< elements of that parameter
};

struct TheoryRequest {
  ActivationForm form;
  GradientForm gradients;
  std::int64_t parameters = 0;  ///< elements
  StateBytes state;
  std::int64_t data_bytes = 0;
  std::int64_t element_bytes = 4;
  std::int64_t batch_size = 1;
  std::int64_t micro_batches = 1;
  std::int64_t checkpointed = 0;       ///< the first so many blocks run again in backward
  std::int64_t loss_chunks = 0;        ///< of the output layer and the loss; 0: as a whole
  bool gradients_stay = false;         ///< zero_grad = "zero": they are there during the forward pass too
  bool optimizer_in_backward = false;  ///< a parameter's gradient goes as soon as it is there
};

/// Bytes at their peaks; the time as a multiple of that of the plain step.
struct Theory {
  double activation_bytes = 0;
  double gradient_bytes = 0;
  double optimizer_bytes = 0;
  double total_bytes = 0;  ///< of an allocator that neither rounds nor fragments
  double relative_time = 1;
};

/// A step is a row of moments, each with its activations and its gradients: the last block's forward pass, the loss,
/// the backward of the head, of each block and of the embedding, the update. Plain, every block's activations are there
/// at the loss, and as they go gradients of parameters come. Of a checkpointed block there are its input and, in its
/// backward, what it computes again (Chen et al., 2016); of the others what they keep until their backward.
/// Micro-batches divide the batch. A loss in chunks has logits and their logarithms of one chunk, and in backward a
/// gradient of each besides. Where the optimiser's state is brought for an update, that of the largest parameter is
/// there at the end, or in backward beside the block that has the parameter. A backward pass costs two forward passes,
/// a second forward pass one more of three.
Theory theory_of(const TheoryRequest& request);

/// The fewest checkpointed blocks with which the peak of activations is at most the share `budget` of what it is with
/// none; -1 where even all of them leave more.
std::int64_t fewest_checkpointed(TheoryRequest request, double budget);

}  // namespace tenon::train
