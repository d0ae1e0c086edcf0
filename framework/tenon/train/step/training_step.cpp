// One step: micro-batches whose gradients add up, and the update.
#include <tenon/train/step/training_step.h>

#include <tenon/autograd/save_on_cpu.h>
#include <tenon/core/scope/scope.h>
#include <tenon/nn/clip_grad.h>
#include <tenon/nn/functional/linear_cross_entropy.h>
#include <tenon/nn/lora.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/support/values.h>

#include <limits>
#include <optional>

namespace tenon::train {

Tensor loss_of(const Model& model, const Tensor& logits, const Tensor& target) {
  if (model.loss) return model.loss(logits, target);
  // Text: every position of every window counts alike.
  if (logits.dim() == 3) return tenon::cross_entropy_loss(logits.flatten(0, 1), target.flatten());
  return tenon::cross_entropy_loss(logits, target);
}

TrainingStep::TrainingStep(StepParts parts) : parts_(std::move(parts)) {
  if (!parts_.techniques.optimizer_in_backward) return;
  in_backward_.emplace(nn::trainable_parameters(*parts_.model.module), [this](const Tensor& parameter) {
    updating_ = true;
    if (parts_.masters != nullptr) {
      parts_.masters->step_parameter(parts_.optimizer, parameter);
    } else {
      parts_.optimizer.step_parameter(parameter);
    }
  });
}

double TrainingStep::number(const Tensor& value) const {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const double read = ops::has_values(value) ? value.item<double>() : kNone;
  return parts_.computes ? read : kNone;  // behind addresses alone there are zeros to read
}

double TrainingStep::run(std::int64_t first) {
  const std::int64_t size = parts_.batch_size, parts = parts_.techniques.micro_batches;
  updating_ = false;
  parts_.precision.begin_step();
  if (parts_.pipeline != nullptr) return run_pipeline(first);
  parts_.ranks.share_buffers(*parts_.model.module);
  // Of the batch, this rank's share, and of that each micro-batch's: Note [One batch for all ranks].
  const std::int64_t ranks = parts_.ranks.batch_parts(), rank = parts_.ranks.batch_part();
  const std::int64_t share_begin = size * rank / ranks, share = size * (rank + 1) / ranks - share_begin;
  double loss = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = share_begin + share * part / parts, end = share_begin + share * (part + 1) / parts;
    const Batch batch = read(first + begin, end - begin);
    Tensor value;
    {
      const scopes::Scope phase(scopes::Phase::kForward);
      const auto pass = parts_.precision.forward_pass();
      std::optional<autograd::SaveOnCpuGuard> offload;
      if (parts_.techniques.offload_activations) offload.emplace();
      value = loss_of_batch(batch);
    }
    if (parts * ranks > 1) value = value * (static_cast<double>(end - begin) / static_cast<double>(size));
    parts_.phase_ended(RunPhase::kForward);
    parts_.ranks.before_backward(value, /*is_last=*/part + 1 == parts);
    parts_.precision.backward(value);
    if (parts_.parallel != nullptr) parts_.parallel->reduce_gradients();
    parts_.ranks.after_backward(/*is_last=*/part + 1 == parts);
    loss += number(value);
    parts_.phase_ended(RunPhase::kBackward);
  }
  if (!in_backward_) update();
  updating_ = false;
  return parts_.ranks.sum(loss);
}

Batch TrainingStep::read(std::int64_t first, std::int64_t count) {
  const scopes::Scope phase(scopes::Phase::kData);
  return parts_.data.get(first, count);
}

/// Forward and backward passes take turns: their phases are one.
double TrainingStep::run_pipeline(std::int64_t first) {
  const Tensor loss = parts_.pipeline->step(read(first, parts_.batch_size));
  parts_.phase_ended(RunPhase::kBackward);
  update();
  updating_ = false;
  return number(loss);
}

Tensor TrainingStep::loss_of_batch(const Batch& batch) const {
  if (parts_.parallel == nullptr) return loss_on_one(parts_.model, batch);
  if (parts_.parallel->loss_on_first()) {
    const Tensor output = parts_.parallel->forward(batch);
    return loss_of(parts_.model, output, batch.target);
  }
  return parts_.parallel->mean_loss(batch,
                                    [this](const Model& model, const Batch& part) { return loss_on_one(model, part); });
}

Tensor TrainingStep::loss_on_one(const Model& model, const Batch& batch) const {
  if (parts_.techniques.chunked_loss == 0) return loss_of(model, model.forward(batch.input), batch.target);
  const HeadInput input = model.before_head(batch.input);
  return nn::functional::linear_cross_entropy(
      input.hidden, input.weight, batch.target,
      nn::functional::LinearCrossEntropyFuncOptions().bias(input.bias).chunks(parts_.techniques.chunked_loss));
}

void TrainingStep::update() {
  const scopes::Scope phase(scopes::Phase::kOptimizer);
  if (const double norm = parts_.options.real("clip_grad_norm"); norm > 0) {
    parts_.precision.unscale(parts_.optimizer);
    const std::vector<Tensor> parameters = parts_.model.module->parameters();
    if (const auto& divided = parts_.ranks.tensor_parallel())
      clip_divided_grad_norm(*divided, parameters, norm);
    else if (parts_.ranks.divides_gradients())
      parts_.ranks.clip_grad_norm(norm);
    else
      nn::utils::clip_grad_norm_(parameters, norm);
  }
  updating_ = true;
  if (parts_.ranks.is_sharded()) {
    parts_.precision.step_by(parts_.optimizer, [this] { parts_.ranks.step(); });
  } else if (parts_.masters != nullptr) {
    parts_.masters->step(parts_.optimizer);
  } else {
    parts_.precision.step(parts_.optimizer);
  }
  if (parts_.ranks.divides_gradients())
    parts_.optimizer.zero_grad(/*set_to_none=*/!parts_.techniques.gradients_stay);
  else
    parts_.model.module->zero_grad(/*set_to_none=*/!parts_.techniques.gradients_stay);
}

}  // namespace tenon::train
