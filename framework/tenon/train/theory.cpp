// Closed forms of peaks.
#include <tenon/train/theory.h>

#include <algorithm>

namespace tenon::train {

Theory theory_of(const TheoryRequest& request) {
  const ActivationForm& form = request.form;
  const auto blocks = static_cast<double>(form.blocks);
  const auto element = static_cast<double>(request.element_bytes);
  const double examples = static_cast<double>(request.batch_size) / static_cast<double>(request.micro_batches);
  const double kept = form.embedding + blocks * (request.checkpoint ? form.block_input : form.block);
  const double at_loss = kept + form.head;
  const double in_backward = kept + form.computed_again + (request.checkpoint ? form.block - form.block_input : 0);

  Theory theory;
  theory.activation_bytes = element * examples * std::max(at_loss, in_backward);
  theory.gradient_bytes = element * static_cast<double>(request.parameters);
  theory.relative_time = request.checkpoint ? 4.0 / 3.0 : 1.0;
  const double always = theory.gradient_bytes + static_cast<double>(request.state_bytes + request.data_bytes);
  // Without gradients from before, they grow while the activations go: the peak is at one of the two ends.
  const bool held = request.gradients_stay || request.micro_batches > 1;
  const double head_gradient = element * static_cast<double>(request.head_parameters);
  theory.total_bytes = always + (held ? theory.gradient_bytes + theory.activation_bytes
                                      : std::max(theory.gradient_bytes, theory.activation_bytes + head_gradient));
  return theory;
}

}  // namespace tenon::train
