// One step: micro-batches whose gradients add up, and the update.
#include <tenon/train/step/training_step.h>

#include <tenon/nn/clip_grad.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/support/values.h>

#include <limits>

namespace tenon::train {

Tensor loss_of(const Model& model, const Tensor& logits, const Tensor& target) {
  if (model.loss) return model.loss(logits, target);
  // Text: every position of every window counts alike.
  if (logits.dim() == 3) return tenon::cross_entropy_loss(logits.flatten(0, 1), target.flatten());
  return tenon::cross_entropy_loss(logits, target);
}

double TrainingStep::number(const Tensor& value) const {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const double read = ops::has_values(value) ? value.item<double>() : kNone;
  return parts_.computes ? read : kNone;  // behind addresses alone there are zeros to read
}

double TrainingStep::run(std::int64_t first) {
  const std::int64_t size = parts_.batch_size, parts = parts_.options.integer("micro_batches");
  updating_ = false;
  double loss = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = size * part / parts, end = size * (part + 1) / parts;
    const Batch batch = parts_.data.get(first + begin, end - begin);
    Tensor value = loss_of(parts_.model, parts_.model.forward(batch.input), batch.target);
    if (parts > 1) value = value * (static_cast<double>(end - begin) / static_cast<double>(size));
    parts_.phase_ended(RunPhase::kForward);
    value.backward();
    loss += number(value);
    parts_.phase_ended(RunPhase::kBackward);
  }
  if (const double norm = parts_.options.real("clip_grad_norm"); norm > 0) {
    nn::utils::clip_grad_norm_(parts_.model.module->parameters(), norm);
  }
  updating_ = true;
  parts_.optimizer.step();
  updating_ = false;
  parts_.optimizer.zero_grad(/*set_to_none=*/parts_.options.text("zero_grad") == "none");
  return loss;
}

}  // namespace tenon::train
