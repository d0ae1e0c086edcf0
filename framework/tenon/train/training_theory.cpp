// What theory expects of a run, and the blocks that a budget chooses by it. Declared in training.h.
#include <tenon/train/training.h>

#include <tenon/memory/purpose.h>
#include <tenon/nn/lora.h>
#include <tenon/nn/quantization/quantize.h>
#include <tenon/train/model_on_device.h>
#include <tenon/train/optimizers.h>
#include <tenon/train/theory.h>

#include <fmt/format.h>

namespace tenon::train {

TheoryRequest Training::theory_request() const {
  const MemoryStats now = device_.allocator().stats();
  const auto trained = static_cast<std::int64_t>(trained_elements(*model_.module));
  const auto element_bytes = static_cast<std::int64_t>(size_of(precision_named(options_.text("precision")).parameters));
  return {.form = model_.activations,
          .gradients = model_.gradients,
          .casts = model_.casts,
          .parameters = trained,
          .parameter_bytes = static_cast<std::int64_t>(nn::quantization::bytes_of(*model_.module)),
          .state = state_bytes(options_, ranks_.remembered(*model_.module)),
          .data_bytes = now.requested_by_purpose[static_cast<std::size_t>(Purpose::kData)].current,
          .bucket_bytes = ranks_.has_buckets() ? trained * element_bytes : 0,
          .element_bytes = element_bytes,
          .batch_size = (batch_size_ + ranks_.batch_parts() - 1) / ranks_.batch_parts(),
          .micro_batches = techniques_.micro_batches,
          .checkpointed = checkpoint_.count(model_.activations.blocks),
          .kept = kept_of(model_.activations, techniques_.checkpoint_keep),
          .loss_chunks = techniques_.chunked_loss,
          .gradients_stay = techniques_.gradients_stay,
          .optimizer_in_backward = techniques_.optimizer_in_backward,
          .offloaded = techniques_.offload_activations};
}

/// Of what the model keeps: none is known where blocks keep results of single operators.
bool Training::has_closed_form() const {
  return model_.activations.blocks > 0 && techniques_.checkpoint_keep.operators.empty() &&
         (!techniques_.lora || has_low_rank_form(options_)) &&
         (!ranks_.tensor_parallel() || !techniques_.offload_activations);
}

void Training::choose_checkpoints() {
  const auto refuse = [&](const std::string& why) { throw config_.error("train.checkpoint_budget", why); };
  const std::int64_t blocks = model_.activations.blocks;
  if (!has_closed_form())
    refuse(
        "no closed form is known of what blocks keep here, and settle_searched() measures it where one process "
        "runs and train.batch_size is a number");
  TheoryRequest request = theory_request();
  const std::int64_t chosen = fewest_checkpointed(request, techniques_.checkpoint_budget);
  if (chosen < 0) {
    const double least = theory_of(request).activation_bytes;
    request.checkpointed = 0;
    refuse(leaves_too_much(techniques_.checkpoint_budget, blocks, least / theory_of(request).activation_bytes));
  }
  checkpoint_.choose(chosen);
  progress_.note(fmt::format("train.checkpoint_budget={:.2f}: the first {} of {} blocks run again in backward",
                             techniques_.checkpoint_budget, chosen, blocks));
}

/// What should come out: of activations and gradients for models that have a closed form.
void Training::note_theory() {
  if (pipeline_) return;  // of a stage none is known
  const TheoryRequest request = theory_request();
  if (techniques_.lora) result_.figures.emplace_back("trained_parameters", trained_elements(*model_.module));
  result_.figures.emplace_back("expected_optimizer_bytes", theory_of(request).optimizer_bytes);
  if (ranks_.divides_gradients()) {
    const distributed::ShardingBytes bytes = ranks_.sharding_bytes(*model_.module);
    result_.figures.emplace_back("expected_parameter_bytes", static_cast<double>(bytes.parameters));
    result_.figures.emplace_back("expected_divided_gradient_bytes", static_cast<double>(bytes.gradients));
    if (has_closed_form())
      result_.figures.emplace_back("expected_activation_bytes", theory_of(request).activation_bytes);
    return;
  }
  if (!has_closed_form()) return;
  note(request, precision_named(options_.text("precision")).autocast.has_value(), result_.figures);
}

}  // namespace tenon::train
