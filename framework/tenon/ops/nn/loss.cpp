// Losses. The negative log-likelihood has kernels: it is linear in its input, so it and its adjoint are each other's
// gradients. The others are written as their formulas.
#include <tenon/kernel/attributes/normalization.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/nn/loss.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/loss_reduction.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

namespace tenon {

using namespace ops;

namespace {

constexpr double kLeastVariance = 1e-12F;  // a float in PyTorch, whose gradients at 0 and 1 show it

// --- negative log-likelihood ---

Tensor likelihood(const Tensor& logp, const Tensor& target, const Tensor& weight, const NllLossAttributes& attributes);

Tensor likelihood_adjoint(const Tensor& dloss, const Tensor& target, const Tensor& weight, const Tensor& total_weight,
                          const Dims& sizes, const NllLossAttributes& attributes) {
  Recording recording = record<2>("NllLossBackwardBackward0", {&dloss}, [attributes](Backward& b) {
    b.set(0, likelihood(b.grad(), b.saved(0), b.saved(1), attributes));
  });
  if (recording) {
    recording.save(0, target);
    recording.save(1, weight);
  }
  const Tensor dense_dloss = dense(dloss);
  Tensor dlogp = allocate_like(dloss, sizes, dloss.scalar_type());
  run(TENON_OP("nll_loss_backward"), state_of(dloss), {view_of(dlogp)},
      {view_of(dense_dloss), view_of(target), view_of(weight), view_of(total_weight)}, &attributes);
  recording.output(dlogp);
  return dlogp;
}

Tensor likelihood(const Tensor& logp, const Tensor& target, const Tensor& weight, const NllLossAttributes& attributes) {
  Recording recording = record<3>("NllLossBackward0", {&logp}, [attributes, sizes = logp.impl().sizes()](Backward& b) {
    b.set(0, likelihood_adjoint(b.grad(), b.saved(0), b.saved(1), b.saved(2), sizes, attributes));
  });
  const Tensor x = dense(logp);
  const bool keeps_elements = attributes.reduction == LossReduction::kNone;
  Tensor loss = allocate_like(x, keeps_elements ? target.impl().sizes() : Dims(), x.scalar_type());
  Tensor total_weight = allocate_like(x, {}, x.scalar_type());
  run(TENON_OP("nll_loss"), state_of(x), {view_of(loss), view_of(total_weight)},
      {view_of(x), view_of(target), view_of(weight)}, &attributes);
  if (recording) {
    recording.save(0, target);
    recording.save(1, weight);
    recording.save(2, total_weight);
    recording.output(loss);
  }
  return loss;
}

/// Probabilities as target: every class counts.
Tensor cross_entropy_of_probabilities(const Tensor& logits, const Tensor& target, const Tensor& weight,
                                      std::int64_t reduction, double label_smoothing, std::int64_t class_dim) {
  const std::int64_t classes = logits.size(class_dim);
  const Tensor smoothed =
      label_smoothing > 0 ? target * (1 - label_smoothing) + label_smoothing / static_cast<double>(classes) : target;
  Tensor terms = logits.log_softmax(class_dim) * smoothed;
  if (weight.defined()) {
    Dims shape = Dims::filled(static_cast<int>(logits.dim()), 1);
    shape[static_cast<int>(class_dim)] = classes;
    terms = terms * weight.view(shape);
  }
  const Tensor loss = terms.sum(class_dim).neg();
  // PyTorch's mean here is over the samples, weights or not.
  return reduced("cross_entropy_loss", loss, reduction);
}

}  // namespace

Tensor nll_loss_nd(const Tensor& input, const Tensor& target, const Tensor& weight, std::int64_t reduction,
                   std::int64_t ignore_index) {
  TENON_SCOPE(nll_loss_nd, input, target, weight, reduction, ignore_index)
  TENON_AUTOCAST_AS(nll_loss, nll_loss_nd(operands...), input, target, weight, reduction, ignore_index)
  check_floating("nll_loss", input);
  check_same_device("nll_loss", {&input, &target, &weight});
  check_same_dtype("nll_loss", {&input, &weight});
  if (input.dim() < 1)
    throw Error("nll_loss: expected input of at least one dimension, (C) or (N, C, …), got a scalar");
  if (target.scalar_type() == kUInt8 && input.dim() > 2) {
    throw Error("expected scalar type Long but found Byte (the target of nll_loss)");
  }
  if (target.scalar_type() != kInt64 && target.scalar_type() != kUInt8) {
    throw Error(fmt::format("expected target dtype to be Long or Byte, but got {}", toString(target.scalar_type())));
  }
  const std::int64_t classes = input.size(input.dim() == 1 ? 0 : 1);
  if (weight.defined() && (weight.dim() != 1 || weight.size(0) != classes)) {
    throw Error(
        fmt::format("weight tensor should be defined either for all {} classes or no classes but got weight tensor of "
                    "shape: {}",
                    classes, to_string(weight.sizes())));
  }
  bool fits = input.dim() == 1 ? target.dim() == 0 || (target.dim() == 1 && target.size(0) == 1)
                               : target.dim() == input.dim() - 1 && target.size(0) == input.size(0);
  for (std::int64_t d = 1; fits && input.dim() > 2 && d < target.dim(); ++d) fits = target.size(d) == input.size(d + 1);
  if (input.dim() > 1 && target.dim() > 0 && target.size(0) != input.size(0)) {
    throw ValueError(
        fmt::format("Expected input batch_size ({}) to match target batch_size ({}).", input.size(0), target.size(0)));
  }
  if (!fits) {
    throw Error(
        fmt::format("size mismatch (got input: {}, target: {}): nll_loss expects the target to have the input's sizes "
                    "without the class dimension",
                    to_string(input.sizes()), to_string(target.sizes())));
  }
  const NllLossAttributes attributes{.reduction = loss_reduction("nll_loss", reduction), .ignore_index = ignore_index};
  const Tensor classes_of = target.to(kInt64).contiguous();
  const Tensor weights = dense(weight);
  if (input.dim() == 2) return likelihood(input, classes_of, weights, attributes);
  if (input.dim() == 1) {
    const Tensor loss = likelihood(input.unsqueeze(0), classes_of.reshape({1}), weights, attributes);
    return loss.dim() == 0 ? loss : as_owned(loss.reshape({}));
  }
  const Tensor loss = likelihood(input.flatten(2), classes_of.flatten(1), weights, attributes);
  return loss.dim() == 0 ? loss : as_owned(loss.reshape(target.sizes()));
}

Tensor cross_entropy_loss(const Tensor& logits, const Tensor& target, const Tensor& weight, std::int64_t reduction,
                          std::int64_t ignore_index, double label_smoothing) {
  TENON_AUTOCAST(cross_entropy_loss, logits, target, weight, reduction, ignore_index, label_smoothing)
  if (label_smoothing < 0 || label_smoothing > 1) {
    throw Error(fmt::format("label_smoothing must be between 0.0 and 1.0. Got: {}", label_smoothing));
  }
  if (logits.dim() < 1) throw Error("cross_entropy_loss: expected logits of at least one dimension, (C) or (N, C, …)");
  const std::int64_t class_dim = logits.dim() == 1 ? 0 : 1;
  if (logits.sizes() == target.sizes()) {
    if (!is_floating_point(target.scalar_type())) {
      throw Error(fmt::format("Expected floating point type for target with class probabilities, got {}",
                              toString(target.scalar_type())));
    }
    if (ignore_index >= 0) throw Error("ignore_index is not supported for floating point target");
    return cross_entropy_of_probabilities(logits, target, weight, reduction, label_smoothing, class_dim);
  }
  const Tensor logp = logits.log_softmax(class_dim);
  Tensor hard = nll_loss_nd(logp, target, weight, reduction, ignore_index);
  if (label_smoothing == 0) return hard;
  // The smoothed part: every class with the same share, samples that are ignored left out.
  const double share = label_smoothing / static_cast<double>(logits.size(class_dim));
  Tensor smooth = weight.defined() && logits.dim() > 1
                      ? [&] {
                          Dims shape = Dims::filled(static_cast<int>(logits.dim()), 1);
                          shape[1] = weight.size(0);
                          return (logp * weight.view(shape)).sum(class_dim).neg();
                        }()
                      : (weight.defined() ? logp * weight : logp).sum(class_dim).neg();
  const Tensor ignored = target.eq(ignore_index);
  smooth = smooth.masked_fill(ignored, 0);
  Tensor total;
  switch (loss_reduction("cross_entropy_loss", reduction)) {
    case LossReduction::kNone:
      total = smooth;
      break;
    case LossReduction::kSum:
      total = smooth.sum();
      break;
    case LossReduction::kMean:
      total = weight.defined()
                  ? smooth.sum() / weight.take(target.masked_fill(ignored, 0).to(kInt64)).masked_fill(ignored, 0).sum()
                  : smooth.sum() / ignored.logical_not().sum();
      break;
  }
  return hard * (1 - label_smoothing) + total * share;
}

namespace {

/// -w (t log p + (1 - t) log(1 - p)) by element, t and w broadcast to p's sizes. Logarithms are kept above -100 and
/// slopes within 1e12, as in PyTorch, so that chances of exactly 0 and 1 give finite losses and gradients.
Tensor cross_entropy_of_chances(const Tensor& p, const Tensor& target, const Tensor& weight) {
  check_same_device("binary_cross_entropy", {&p, &target, &weight});
  check_same_dtype("binary_cross_entropy", {&p, &target});
  for (const Tensor* other : {&target, &weight}) {
    if (other->defined() && !is_expandable_to(other->impl().sizes(), p.impl().sizes())) {
      throw Error(fmt::format("binary_cross_entropy: {} of size {} do not fit chances of size {}",
                              other == &target ? "targets" : "weights", to_string(other->sizes()),
                              to_string(p.sizes())));
    }
  }
  // On the CPU only: elsewhere reading the extremes would wait for the device.
  if (p.device().is_cpu() && p.numel() > 0) {
    NoGradGuard no_grad;
    const auto lowest = p.min().item<double>(), highest = p.max().item<double>();
    if (!(lowest >= 0 && highest <= 1)) {
      throw Error(fmt::format(
          "binary_cross_entropy: all elements of input should be between 0 and 1, but they lie between {} and {}",
          lowest, highest));
    }
  }
  Recording recording = record<3>("BinaryCrossEntropyBackward0", {&p, &target}, [](Backward& b) {
    const Tensor p = b.saved(0);
    const Tensor weight = b.saved(2);
    const Tensor gradient = weight.defined() ? b.grad() * weight : b.grad();
    const Tensor q = 1 - p;
    if (b.needs(0)) b.set(0, gradient * ((p - b.saved(1)) / (q * p).clamp_min(kLeastVariance)));
    if (b.needs(1)) b.set(1, gradient * (q.log() - p.log()));
  });
  if (recording) {
    recording.save(0, p);
    recording.save(1, target);
    recording.save(2, weight);
  }
  NoGradGuard no_grad;
  Tensor loss = (1 - p).log_().clamp_min_(-100).mul_(target - 1);
  loss.sub_(p.log().clamp_min_(-100).mul_(target));
  if (weight.defined()) loss.mul_(weight);
  loss.impl().storage().version() = 0;
  recording.output(loss);
  return loss;
}

}  // namespace

namespace {

/// input - target, either of which may be bool beside a number.
Tensor distance(const Tensor& input, const Tensor& target) {
  const bool is_truth = input.scalar_type() == kBool, is_true_target = target.scalar_type() == kBool;
  if (is_truth == is_true_target) return input - target;
  return is_truth ? input.to(target.scalar_type()) - target : input - target.to(input.scalar_type());
}

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, std::int64_t reduction) {
  TENON_AUTOCAST(mse_loss, input, target, reduction)
  return reduced("mse_loss", distance(input, target).square(), reduction);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction) {
  TENON_AUTOCAST(l1_loss, input, target, reduction)
  return reduced("l1_loss", distance(input, target).abs(), reduction);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction, double beta) {
  TENON_AUTOCAST(smooth_l1_loss, input, target, reduction, beta)
  if (beta < 0) throw Error("smooth_l1_loss does not support negative values for beta.");
  if (beta == 0) return l1_loss(input, target, reduction);
  // The square is that of the distance itself, whose second derivative at 0 is 2, not that of its magnitude.
  const Tensor d = distance(input, target), z = d.abs();
  return reduced("smooth_l1_loss", where(z.lt(beta), d.square() * (0.5 / beta), z - 0.5 * beta), reduction);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, std::int64_t reduction, double delta) {
  TENON_AUTOCAST(huber_loss, input, target, reduction, delta)
  if (!(delta > 0)) throw Error("huber_loss does not support non-positive values for delta.");
  const Tensor d = distance(input, target), z = d.abs();
  const Tensor loss = where(z.lt(delta), d.square() * 0.5, (z - 0.5 * delta) * delta);
  // Each loss lies where its input does, whatever the layout of the targets.
  return reduced("huber_loss", loss.sizes() == input.sizes() ? laid_out_after(input, input, loss) : loss, reduction);
}

namespace {

/// Throws Error for a weight that requires a gradient, in PyTorch's words: it has no formula for that.
void check_constant(const char* op, const char* argument, const Tensor& tensor) {
  if (tensor.defined() && tensor.requires_grad() && GradMode::is_enabled()) {
    throw Error(
        fmt::format("The function '{}' is not differentiable with respect to argument '{}'. This input cannot have "
                    "requires_grad True.",
                    op, argument));
  }
}

}  // namespace

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, std::int64_t reduction) {
  TENON_AUTOCAST(binary_cross_entropy, input, target, weight, reduction)
  check_constant("binary_cross_entropy", "weight", weight);
  if (target.impl().sizes() == input.impl().sizes()) {
    return reduced("binary_cross_entropy", cross_entropy_of_chances(input, target, weight), reduction);
  }
  // libtorch's operator drops dimensions of size 1 from both: an output of (N, 1) meets labels of (N).
  const Tensor dropped = weight.defined() ? weight.squeeze() : weight;
  const Tensor loss = cross_entropy_of_chances(input.squeeze(), target.squeeze(), dropped);
  return reduced("binary_cross_entropy", reduction == 0 ? loss.reshape(input.sizes()) : loss, reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, std::int64_t reduction) {
  TENON_AUTOCAST(binary_cross_entropy_with_logits, input, target, weight, pos_weight, reduction)
  check_constant("binary_cross_entropy_with_logits", "weight", weight);
  check_constant("binary_cross_entropy_with_logits", "pos_weight", pos_weight);
  const Dims sizes = broadcast_sizes(input.impl().sizes(), target.impl().sizes());
  if (!(sizes == target.impl().sizes())) {
    throw Error("output with shape " + to_string(target.sizes()) + " doesn't match the broadcast shape " +
                to_string(sizes) + ": binary_cross_entropy_with_logits needs targets of the input's sizes");
  }
  // log(1 + exp(-x)), without overflow and with a derivative at 0.
  const Tensor log_term = log_sigmoid(input).neg();
  Tensor loss = (1 - target) * input + (pos_weight.defined() ? ((pos_weight - 1) * target + 1) * log_term : log_term);
  if (weight.defined()) loss = loss * weight;
  return reduced("binary_cross_entropy_with_logits", loss, reduction);
}

}  // namespace tenon
