// Closed forms of peaks.
#include <tenon/train/theory.h>

#include <algorithm>

namespace tenon::train {
namespace {

/// The highest of all moments of a step, in elements.
class Peaks {
 public:
  /// `beside`: casts of parameters, and what is brought of the optimiser's state.
  void moment(double activations, double gradients, double beside) {
    activations_ = std::max(activations_, activations);
    gradients_ = std::max(gradients_, gradients);
    all_ = std::max(all_, activations + gradients + beside);
  }
  double activations() const { return activations_; }
  double gradients() const { return gradients_; }
  double all() const { return all_; }

 private:
  double activations_ = 0, gradients_ = 0, all_ = 0;
};

/// A step of `n` examples at once: of the largest micro-batch, where they differ by one.
class Step {
 public:
  explicit Step(const TheoryRequest& request)
      : request_(request),
        form_(request.form),
        gradients_(request.gradients),
        casts_(request.casts),
        n_(static_cast<double>(largest_part(request))),
        parameters_(static_cast<double>(request.parameters)),
        is_held_(request.gradients_stay || request.micro_batches > 1),
        logits_(gradients_.head_passing / 2),
        head_(head_of(request)) {}

  Peaks peaks() {
    forward();
    head();
    for (std::int64_t block = form_.blocks; block > 0; --block) backward_of(static_cast<double>(block));
    embedding();
    if (!request_.optimizer_in_backward)  // the update
      peaks_.moment(0, parameters_ + for_masters(parameters_), brought_for(parameters_));
    return peaks_;
  }

 private:
  static std::int64_t largest_part(const TheoryRequest& request) {
    return (request.batch_size + request.micro_batches - 1) / request.micro_batches;
  }
  static double head_of(const TheoryRequest& request) {
    const double logits = request.gradients.head_passing / 2;
    if (request.offloaded) return request.loss_chunks > 0 ? request.gradients.chunk_input : logits;
    return request.form.head - (request.loss_chunks > 0 ? logits : 0);
  }
  double chunks() const { return static_cast<double>(request_.loss_chunks); }
  bool runs_again(double block) const { return block <= static_cast<double>(request_.checkpointed); }
  double kept_by(double blocks) const {
    if (request_.offloaded) return 0;
    const double again = std::min(blocks, static_cast<double>(request_.checkpointed));
    const double less = request_.checkpointed == 0 && blocks > 0 ? form_.first_less : 0;
    return form_.embedding + again * (form_.block_input + request_.kept.elements) + (blocks - again) * form_.block -
           less;
  }
  /// Weights in 16 bits that do not learn, of the first so many blocks.
  double frozen_of(double blocks) const {
    const double again = std::min(blocks, static_cast<double>(request_.checkpointed));
    const double less = request_.checkpointed == 0 && blocks > 0 ? form_.frozen_first_less : 0;
    return (blocks - again) * form_.frozen - less;
  }
  /// Gradients of parameters, where `there` of them have come in this backward pass.
  double of_parameters(double there) const {
    if (request_.optimizer_in_backward) return 0;
    return is_held_ ? parameters_ : there;
  }
  /// Where the table of symbols is the output layer too, its gradient waits for its other half.
  double waiting() const { return std::max(0.0, gradients_.embedding - gradients_.embedding_parameters); }

  /// In the backward of a block that is the last one left of so many: its own, and those of the blocks before it.
  double casts_of(double blocks) const {
    if (request_.offloaded) return 0;  // they are brought back one by one
    return runs_again(blocks) ? casts_.block : (blocks - static_cast<double>(request_.checkpointed)) * casts_.block;
  }
  /// Of bytes that an update of the largest parameter takes, in elements, for one of so many elements at most.
  double share_for(double elements, std::int64_t bytes) const {
    const double share = std::min(1.0, elements / static_cast<double>(request_.state.largest));
    return share * static_cast<double>(bytes) / static_cast<double>(request_.element_bytes);
  }
  /// Of the optimiser's state.
  double brought_for(double elements) const { return share_for(elements, request_.state.update); }
  /// Gradients in float32 for masters.
  double for_masters(double elements) const { return share_for(elements, request_.state.gradient); }
  /// So, where backward updates.
  double for_masters_in_backward(double elements) const {
    return request_.optimizer_in_backward ? for_masters(elements) : 0;
  }
  /// What is brought, where backward updates.
  double in_backward(double elements) const { return request_.optimizer_in_backward ? brought_for(elements) : 0; }

  void forward() {
    const auto blocks = static_cast<double>(form_.blocks);
    const double before = is_held_ ? parameters_ : 0, casts = blocks * casts_.block;
    const double passing = request_.offloaded ? form_.away_forward : kept_by(blocks) + form_.passing;
    const double frozen = frozen_of(blocks);
    if (!runs_again(blocks)) {
      peaks_.moment(n_ * passing + frozen - form_.frozen_late, before, casts);
      if (form_.frozen_late > 0) peaks_.moment(n_ * (kept_by(blocks) + form_.passing_late) + frozen, before, casts);
    }
    if (request_.loss_chunks > 0) {
      const double chunk = (logits_ + form_.head_passing) / chunks();
      peaks_.moment(n_ * (kept_by(blocks) + head_ + form_.head_input + chunk) + frozen + form_.frozen_head, before,
                    casts + casts_.head);
      return;
    }
    peaks_.moment(n_ * (kept_by(blocks) + head_ + form_.head_passing) + frozen + form_.frozen_head, before,
                  casts + casts_.head);
  }

  void head() {
    const auto blocks = static_cast<double>(form_.blocks);
    const double kept = kept_by(blocks) + head_, frozen = frozen_of(blocks);
    const double casts = casts_.head + (runs_again(blocks) ? 0 : casts_of(blocks));
    if (request_.loss_chunks > 0) {
      // Beside them the gradients of the layer and of what it reads grow from chunk to chunk.
      const double passing = gradients_.chunk_passing / chunks() + gradients_.chunk_input;
      peaks_.moment(n_ * kept + frozen + form_.frozen_head,
                    of_parameters(0) + gradients_.chunk_parameters + n_ * passing, casts);
      return;
    }
    peaks_.moment(n_ * kept + frozen + form_.frozen_head, of_parameters(0) + n_ * gradients_.head_passing, casts);
    peaks_.moment(n_ * (kept - logits_) + frozen,
                  of_parameters(0) + gradients_.head_parameters + gradients_.head_beside +
                      n_ * gradients_.head_late_passing + for_masters_in_backward(gradients_.head_parameters),
                  casts + in_backward(gradients_.head_parameters));
  }

  void backward_of(double block) {
    const bool adds_up = is_held_ || request_.optimizer_in_backward;  // none of this pass stays beside the others
    const double behind = static_cast<double>(form_.blocks) - block;
    const double there =
        of_parameters(gradients_.head_parameters + behind * gradients_.block_parameters) + (adds_up ? waiting() : 0);
    // Its second run takes what it has kept.
    const double others_keep = kept_by(block) - (runs_again(block) ? request_.kept.elements : 0);
    const double again = request_.offloaded ? form_.away_backward
                                            : others_keep + (runs_again(block) ? form_.block - form_.block_input : 0);
    const double casts = casts_of(block), others = std::max(0.0, casts - casts_.block);
    const double frozen = frozen_of(block) + (runs_again(block) ? form_.frozen : 0);
    const double frozen_of_others = std::max(0.0, frozen - form_.frozen);
    if (runs_again(block)) {
      const double passed = there + n_ * (form_.block_input + gradients_.when_again);
      peaks_.moment(n_ * (again + form_.passing) + frozen - form_.frozen_late, passed, casts);
      if (form_.frozen_late > 0) peaks_.moment(n_ * (again + form_.passing_late) + frozen, passed, casts);
    }
    const double most = std::max(
        {n_ * gradients_.passing + gradients_.beside_passing, n_ * gradients_.beside_largest + gradients_.largest,
         n_ * gradients_.beside_updated + gradients_.largest + for_masters_in_backward(gradients_.largest)});
    peaks_.moment(n_ * (again - gradients_.gone_when_passing) + frozen - form_.frozen_narrow,
                  there + most + (adds_up ? 0 : gradients_.first),
                  std::max(0.0, casts - casts_.behind) + in_backward(gradients_.largest));
    if (request_.offloaded)
      peaks_.moment(n_ * form_.away_late, there + n_ * gradients_.late_beside_away + (adds_up ? 0 : gradients_.late),
                    0);
    const double gone = runs_again(block) ? 0 : gradients_.gone_when_late;  // else the block is gone as a whole
    peaks_.moment(n_ * (others_keep - gone) + frozen_of_others,
                  there + n_ * gradients_.late_passing + (adds_up ? 0 : gradients_.late), others);
    if (!adds_up) peaks_.moment(n_ * others_keep, there + n_ * gradients_.last_passing + gradients_.last, others);
  }

  void embedding() {
    const double there = of_parameters(parameters_ - gradients_.embedding_parameters);
    peaks_.moment(request_.offloaded ? 0 : n_ * form_.embedding, there + gradients_.embedding + n_ * form_.block_input,
                  in_backward(gradients_.embedding_parameters));
    if (request_.optimizer_in_backward)
      peaks_.moment(0, there + gradients_.embedding_parameters + for_masters(gradients_.embedding_parameters), 0);
  }

  const TheoryRequest& request_;
  const ActivationForm& form_;
  const GradientForm& gradients_;
  const CastForm& casts_;
  double n_, parameters_;
  bool is_held_;
  double logits_;
  double head_;  ///< kept between the last block and the loss
  Peaks peaks_;
};

}  // namespace

Theory theory_of(const TheoryRequest& request) {
  const Peaks peaks = Step(request).peaks();
  const auto element = static_cast<double>(request.element_bytes);
  const double parameter_bytes = request.parameter_bytes > 0 ? static_cast<double>(request.parameter_bytes)
                                                             : element * static_cast<double>(request.parameters);
  const double always =
      parameter_bytes + static_cast<double>(request.state.device + request.data_bytes + request.bucket_bytes);
  const double head_share = request.gradients.head_parameters / static_cast<double>(request.parameters);
  const double head_again = request.loss_chunks > 0 ? head_share / 3 : 0;
  const double blocks_again = request.form.blocks > 0
                                  ? static_cast<double>(request.checkpointed) / static_cast<double>(request.form.blocks)
                                  : 0;
  // A frozen layer makes two of its three products: none for a gradient of its weight.
  const double once = request.form.low_rank_work > 0 ? 2.0 / 3 + request.form.low_rank_work : 1;
  return {.activation_bytes = element * peaks.activations(),
          .gradient_bytes = element * peaks.gradients(),
          .cast_bytes = element * (static_cast<double>(request.form.blocks) * request.casts.block + request.casts.head),
          .optimizer_bytes = static_cast<double>(request.state.device + request.state.update),
          .total_bytes = always + element * peaks.all(),
          .relative_time = once + blocks_again * (1 - request.kept.share) / 3 + head_again};
}

std::int64_t fewest_checkpointed(TheoryRequest request, double budget) {
  request.checkpointed = 0;
  const double most = budget * theory_of(request).activation_bytes;
  for (; request.checkpointed <= request.form.blocks; ++request.checkpointed)
    if (theory_of(request).activation_bytes <= most) return request.checkpointed;
  return -1;
}

void note(const TheoryRequest& request, bool is_mixed, std::vector<std::pair<std::string, double>>& figures) {
  const Theory theory = theory_of(request);
  figures.emplace_back("expected_activation_bytes", theory.activation_bytes);
  figures.emplace_back("expected_gradient_bytes", theory.gradient_bytes);
  figures.emplace_back("expected_total_bytes", theory.total_bytes);
  if (is_mixed) {
    figures.emplace_back("expected_cast_bytes", theory.cast_bytes);
  } else {
    figures.emplace_back("expected_relative_time", theory.relative_time);
  }
}

}  // namespace tenon::train
