// What theory expects of a training step's memory and time, from closed forms: to stand beside what was measured.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenon::train {

/// Activations of one example, in elements of the parameters' dtype: one of 16 bits beside float32 counts a half. A
/// block's figure includes its input.
struct ActivationForm {
  double embedding = 0;  ///< before the first block
  double block = 0;      ///< kept for its backward
  double block_input = 0;
  double first_less =
      0;  ///< the first block keeps so much less, where nothing before it learns and it does not run again
  std::int64_t blocks = 0;
  double products = 0;  ///< what its products of matrices give, and its attention: a checkpointed block may keep it
  double attention = 0;
  double attention_share = 0;  ///< of a block's work; the rest is its products'
  double low_rank_work = 0;    ///< of matrices beside frozen layers, in units of the plain step; 0: every layer learns
  double frozen = 0;  ///< not of an example: a block's weights that do not learn, in 16 bits, until its backward
  double frozen_first_less = 0;  ///< of those, what the first block needs not, as above
  double frozen_narrow = 0;      ///< of those, what is gone when most passes in backward
  double frozen_late = 0;        ///< of those, what is not yet there when most passes in the forward pass
  double passing_late = 0;       ///< in a block's forward pass, at most, once all of those are there
  double frozen_head = 0;        ///< the output layer's
  double head = 0;               ///< after the last block, up to the loss
  double passing = 0;            ///< in a block's forward pass beside what it keeps, at most
  double head_passing = 0;       ///< gone when the loss is there
  double head_input = 0;         ///< held by whoever computes the loss in chunks, beside what the head keeps of it
  double away_forward = 0;       ///< in a block's forward pass, at most, where what it keeps is offloaded
  double away_backward = 0;      ///< of that, back on the device while most gradients pass through the block
  double away_late = 0;          ///< the same while attention's gradients pass
};

/// Gradients that pass, in elements of one example, and those of parameters, in elements; a half as above.
struct GradientForm {
  double passing = 0;               ///< through a block's backward, at most
  double when_again = 0;            ///< beside the stream's, when backward asks for a checkpointed block first
  double beside_passing = 0;        ///< of a parameter, in 16 bits, while that passes
  double gone_when_passing = 0;     ///< of the block's activations, then
  double first = 0;                 ///< of its parameters, what has its gradient then
  double beside_largest = 0;        ///< pass while the block's largest parameter gets its gradient
  double beside_updated = 0;        ///< pass while that gradient is used in backward
  double largest = 0;               ///< parameter of a block
  double late_passing = 0;          ///< most that passes when nearly all of a block's parameters have their gradients
  double late = 0;                  ///< of its parameters, what has its gradient then
  double gone_when_late = 0;        ///< of the block's activations, then
  double late_beside_away = 0;      ///< pass while what attention kept is back on the device
  double last_passing = 0;          ///< when the last of a block's parameters gets its gradient
  double last = 0;                  ///< of its parameters, what is there then, in 16 bits as well
  double head_passing = 0;          ///< from the loss to the output layer
  double head_late_passing = 0;     ///< of those, while the layer gets its gradient
  double chunk_passing = 0;         ///< the same where the head is computed again, as a whole
  double chunk_input = 0;           ///< of what the head reads, beside that
  double chunk_parameters = 0;      ///< of the layer's parameters, beside that
  double embedding = 0;             ///< parameters': from both ends of the model, before they are added up
  double head_parameters = 0;       ///< have their gradient before the last block's backward begins
  double head_beside = 0;           ///< what is in 16 bits of them beside that
  double block_parameters = 0;      ///< of each block
  double embedding_parameters = 0;  ///< that get their gradient behind the first block
};

/// Parameters that autocast keeps in 16 bits, in elements as above: until the forward pass ends, and until the backward
/// of the products that read them.
struct CastForm {
  double block = 0;
  double behind = 0;  ///< of those, what is gone when most passes through the block's backward
  double head = 0;
};

/// What an optimiser remembers, in bytes.
struct StateBytes {
  std::int64_t device = 0;    ///< between updates
  std::int64_t host = 0;      ///< so
  std::int64_t update = 0;    ///< on the device besides, while the largest parameter is updated
  std::int64_t gradient = 0;  ///< of that parameter, in float32 for its master
  std::int64_t largest = 1;   ///< elements of that parameter
};

/// What a checkpointed block keeps so that it is not computed again.
struct KeptByBlock {
  double elements = 0;  ///< of one example
  double share = 0;     ///< of the block's work, 0 to 1
};

struct TheoryRequest {
  ActivationForm form;
  GradientForm gradients;
  CastForm casts;
  std::int64_t parameters = 0;       ///< elements that have gradients
  std::int64_t parameter_bytes = 0;  ///< of all, those that stay as they are too; 0: they have gradients, all of them
  StateBytes state;
  std::int64_t data_bytes = 0;
  std::int64_t bucket_bytes = 0;  ///< in which ranks send gradients: there from the first step to the last
  std::int64_t element_bytes = 4;
  std::int64_t batch_size = 1;
  std::int64_t micro_batches = 1;
  std::int64_t checkpointed = 0;       ///< the first so many blocks run again in backward
  KeptByBlock kept;                    ///< of a checkpointed block, beside its input
  std::int64_t loss_chunks = 0;        ///< of the output layer and the loss; 0: as a whole
  bool gradients_stay = false;         ///< zero_grad = "zero": they are there during the forward pass too
  bool optimizer_in_backward = false;  ///< a parameter's gradient goes as soon as it is there
  bool offloaded = false;              ///< what is kept for backward waits in host memory
};

/// Bytes at their peaks; the time as a multiple of that of the plain step.
struct Theory {
  double activation_bytes = 0;
  double gradient_bytes = 0;
  double cast_bytes = 0;  ///< of parameters, in 16 bits
  double optimizer_bytes = 0;
  double total_bytes = 0;  ///< of an allocator that neither rounds nor fragments, without what kernels ask for
  double relative_time = 1;
};

/// A step is a row of moments, each with its activations and its gradients: the last block's forward pass, the loss,
/// the backward of the head, of each block and of the embedding, the update. Plain, every block's activations are there
/// at the loss, and as they go gradients of parameters come. Of a checkpointed block there are its input and, in its
/// backward, what it computes again (Chen et al., 2016), and all along what it keeps of that; of the others what they
/// keep until their backward. Micro-batches divide the batch. A loss in chunks has logits and their logarithms of one
/// chunk, and in backward a gradient of each besides. Where the optimiser's state is brought for an update, that of the
/// largest parameter is there at the end, or in backward beside the block that has the parameter. A backward pass costs
/// two forward passes, a second forward pass one more of three. Casts of parameters stand beside all that: those of a
/// checkpointed block are made twice. Offloaded, nothing is kept on the device: a block's forward pass has what it
/// works on, its backward what it has brought back.
Theory theory_of(const TheoryRequest& request);

/// The fewest checkpointed blocks with which the peak of activations is at most the share `budget` of what it is with
/// none; -1 where even all of them leave more.
std::int64_t fewest_checkpointed(TheoryRequest request, double budget);

/// Theory as a run's figures: expected_activation_bytes and its like. Of mixed precision there is no time, since how
/// much faster products in 16 bits are depends on the device.
void note(const TheoryRequest& request, bool is_mixed, std::vector<std::pair<std::string, double>>& figures);

}  // namespace tenon::train
