// Closed forms of peaks.
#include <tenon/train/theory.h>

#include <algorithm>

namespace tenon::train {
namespace {

/// The highest of all moments of a step, in elements.
class Peaks {
 public:
  void moment(double activations, double gradients, double states = 0) {
    activations_ = std::max(activations_, activations);
    gradients_ = std::max(gradients_, gradients);
    all_ = std::max(all_, activations + gradients + states);
  }
  double activations() const { return activations_; }
  double gradients() const { return gradients_; }
  /// With what is brought of the optimiser's state.
  double all() const { return all_; }

 private:
  double activations_ = 0, gradients_ = 0, all_ = 0;
};

/// A step of `n` examples at once.
class Step {
 public:
  explicit Step(const TheoryRequest& request)
      : request_(request),
        form_(request.form),
        gradients_(request.gradients),
        n_(static_cast<double>(request.batch_size) / static_cast<double>(request.micro_batches)),
        parameters_(static_cast<double>(request.parameters)),
        is_held_(request.gradients_stay || request.micro_batches > 1),
        head_(form_.head - (request.loss_chunks > 0 ? gradients_.head_passing / 2 : 0)) {}

  Peaks peaks() {
    forward();
    head();
    for (std::int64_t block = form_.blocks; block > 0; --block) backward_of(static_cast<double>(block));
    embedding();
    if (!request_.optimizer_in_backward) peaks_.moment(0, parameters_, brought_for(parameters_));  // the update
    return peaks_;
  }

 private:
  double chunks() const { return static_cast<double>(request_.loss_chunks); }
  bool runs_again(double block) const { return block <= static_cast<double>(request_.checkpointed); }
  double kept_by(double blocks) const {
    const double again = std::min(blocks, static_cast<double>(request_.checkpointed));
    return form_.embedding + again * form_.block_input + (blocks - again) * form_.block;
  }
  /// Gradients of parameters, where `there` of them have come in this backward pass.
  double of_parameters(double there) const {
    if (request_.optimizer_in_backward) return 0;
    return is_held_ ? parameters_ : there;
  }
  /// Where the table of symbols is the output layer too, its gradient waits for its other half.
  double waiting() const { return std::max(0.0, gradients_.embedding - gradients_.embedding_parameters); }

  /// Of the optimiser's state, for an update of so many elements at most.
  double brought_for(double elements) const {
    const double share = std::min(1.0, elements / static_cast<double>(request_.state.largest));
    return share * static_cast<double>(request_.state.update) / static_cast<double>(request_.element_bytes);
  }
  /// So, where backward updates.
  double in_backward(double elements) const { return request_.optimizer_in_backward ? brought_for(elements) : 0; }

  void forward() {
    const auto blocks = static_cast<double>(form_.blocks);
    const double before = is_held_ ? parameters_ : 0;
    if (!runs_again(blocks)) peaks_.moment(n_ * (kept_by(blocks) + form_.passing), before);
    if (request_.loss_chunks > 0) {
      peaks_.moment(n_ * (kept_by(blocks) + head_ + gradients_.head_passing / chunks()), before);
      return;
    }
    peaks_.moment(n_ * (kept_by(blocks) + head_ + form_.head_passing), before);
  }

  void head() {
    const double kept = kept_by(static_cast<double>(form_.blocks)) + head_;
    if (request_.loss_chunks > 0) {
      // Beside them the gradients of the layer and of what it reads grow from chunk to chunk.
      peaks_.moment(n_ * kept, of_parameters(0) + gradients_.head_parameters +
                                   n_ * (2 * gradients_.head_passing / chunks() + form_.block_input));
      return;
    }
    peaks_.moment(n_ * kept, of_parameters(0) + n_ * gradients_.head_passing);
    peaks_.moment(n_ * (kept - gradients_.head_passing / 2),
                  of_parameters(0) + gradients_.head_parameters + n_ * gradients_.head_passing / 2,
                  in_backward(gradients_.head_parameters));
  }

  void backward_of(double block) {
    const bool adds_up = is_held_ || request_.optimizer_in_backward;  // none of this pass stays beside the others
    const double behind = static_cast<double>(form_.blocks) - block;
    const double there =
        of_parameters(gradients_.head_parameters + behind * gradients_.block_parameters) + (adds_up ? waiting() : 0);
    const double again = kept_by(block) + (runs_again(block) ? form_.block - form_.block_input : 0);
    if (runs_again(block)) peaks_.moment(n_ * (again + form_.passing), there + n_ * form_.block_input);
    const double most = std::max(n_ * gradients_.passing, n_ * gradients_.beside_largest + gradients_.largest);
    peaks_.moment(n_ * again, there + most + (adds_up ? 0 : gradients_.first), in_backward(gradients_.largest));
    peaks_.moment(n_ * kept_by(block), there + n_ * gradients_.late_passing + (adds_up ? 0 : gradients_.late));
  }

  void embedding() {
    const double there = of_parameters(parameters_ - gradients_.embedding_parameters);
    peaks_.moment(n_ * form_.embedding, there + gradients_.embedding + n_ * form_.block_input,
                  in_backward(gradients_.embedding_parameters));
  }

  const TheoryRequest& request_;
  const ActivationForm& form_;
  const GradientForm& gradients_;
  double n_, parameters_;
  bool is_held_;
  double head_;  ///< kept between the last block and the loss
  Peaks peaks_;
};

}  // namespace

Theory theory_of(const TheoryRequest& request) {
  const Peaks peaks = Step(request).peaks();
  const auto element = static_cast<double>(request.element_bytes);
  const double always = element * static_cast<double>(request.parameters) +
                        static_cast<double>(request.state.device + request.data_bytes);
  const double head_share = request.gradients.head_parameters / static_cast<double>(request.parameters);
  const double head_again = request.loss_chunks > 0 ? head_share / 3 : 0;
  const double blocks_again = request.form.blocks > 0
                                  ? static_cast<double>(request.checkpointed) / static_cast<double>(request.form.blocks)
                                  : 0;
  return {.activation_bytes = element * peaks.activations(),
          .gradient_bytes = element * peaks.gradients(),
          .optimizer_bytes = static_cast<double>(request.state.device + request.state.update),
          .total_bytes = always + element * peaks.all(),
          .relative_time = 1 + blocks_again / 3 + head_again};
}

std::int64_t fewest_checkpointed(TheoryRequest request, double budget) {
  request.checkpointed = 0;
  const double most = budget * theory_of(request).activation_bytes;
  for (; request.checkpointed <= request.form.blocks; ++request.checkpointed)
    if (theory_of(request).activation_bytes <= most) return request.checkpointed;
  return -1;
}

}  // namespace tenon::train
