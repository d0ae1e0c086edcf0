// Losses and distances.
#include <tenon/kernel/attributes/normalization.h>
#include <tenon/ops/indexing.h>
#include <tenon/ops/normalization.h>
#include <tenon/ops/pointwise.h>
#include <tenon/ops/reduction.h>
#include <tenon/ops/support.h>

namespace tenon {

using namespace ops;

namespace {

Tensor reduced(const Tensor& loss, std::int64_t reduction) {
  if (reduction == Reduction::Mean) return loss.mean();
  if (reduction == Reduction::Sum) return loss.sum();
  return loss;
}

/// -x[target] as a gather, for when the gradient must be differentiable.
Tensor nll_gradient_composed(const Tensor& gradient, const Dims& x_sizes, const Tensor& target, const Tensor& weight,
                             const Tensor& total_weight, const NllLossAttributes& attributes) {
  const Tensor ignored = target.eq(attributes.ignore_index);
  const Tensor places = target.masked_fill(ignored, 0);
  Tensor amount = weight.defined() ? weight.index_select(0, places.reshape({-1})).view(places.sizes()) : gradient.new_ones(places.sizes());
  amount = amount.masked_fill(ignored, 0).neg();
  Tensor each = amount.mul(gradient);
  if (attributes.reduction == LossReduction::kMean) each = each.div(total_weight);
  return gradient.new_zeros(x_sizes).scatter_add(1, places.unsqueeze(1), each.unsqueeze(1));
}

}  // namespace

Tensor nll_loss_nd(const Tensor& given, const Tensor& given_target, const std::optional<Tensor>& weight_, std::int64_t reduction, std::int64_t ignore_index) {
  if (given.dim() < 1) throw Error("Expected 1 or more dimensions (got " + std::to_string(given.dim()) + ")");
  check_floating("nll_loss", given);
  if (given_target.scalar_type() != kInt64) {
    throw Error(std::string("expected scalar type Long but found ") + toString(given_target.scalar_type()) + " (target of nll_loss)");
  }
  const bool batched = given.dim() > 1;
  Tensor x = batched ? given : given.unsqueeze(0);
  Tensor target = batched ? given_target : given_target.reshape({1});
  if (x.size(0) != target.size(0)) {
    throw Error("Expected input batch_size (" + std::to_string(x.size(0)) + ") to match target batch_size (" + std::to_string(target.size(0)) + ").");
  }
  const std::int64_t classes = x.size(1);
  const Dims target_sizes = target.impl().sizes();
  if (x.dim() > 2) {
    Dims expected{x.size(0)};
    for (int i = 2; i < x.dim(); ++i) expected.push_back(x.size(i));
    if (!(target_sizes == expected)) {
      throw Error("size mismatch (got input: " + to_string(x.sizes()) + " , target: " + to_string(target_sizes) + ")");
    }
    x = x.reshape({x.size(0), classes, -1});
    target = target.reshape({x.size(0), -1});
  } else if (target.dim() != 1) {
    throw Error("0D or 1D target tensor expected, multi-target not supported (got target of shape " + to_string(target_sizes) + ")");
  }
  x = x.contiguous();
  target = target.contiguous();
  const Tensor weight = dense(weight_.value_or(Tensor()));
  if (weight.defined() && (weight.dim() != 1 || weight.numel() != classes)) {
    throw Error("weight tensor should be defined either for all " + std::to_string(classes) + " classes or no classes but got weight tensor of shape: " + to_string(weight.sizes()));
  }
  NllLossAttributes attributes{static_cast<LossReduction>(reduction), ignore_index};
  const Dims x_sizes = x.impl().sizes();
  Recording recording = record<3>("NllLossBackward0", {&x}, [attributes, x_sizes](Backward& b) {
    const Tensor target = b.saved(0);
    const Tensor weight = b.saved(1);
    const Tensor total_weight = b.saved(2);
    if (differentiating_twice()) {
      b.set(0, nll_gradient_composed(b.grad(), x_sizes, target, weight, total_weight, attributes));
      return;
    }
    const Tensor dy = b.grad().contiguous();
    Tensor result = allocate_like(dy, x_sizes, dy.scalar_type());
    run(TENON_OP("nll_loss_backward"), ops::state_of(dy), {view_of(result)}, {view_of(dy), view_of(target), view_of(weight), view_of(total_weight)}, &attributes);
    b.set(0, result);
  });
  Tensor loss = allocate_like(x, attributes.reduction == LossReduction::kNone ? target.impl().sizes() : Dims{}, x.scalar_type());
  Tensor total_weight = allocate_like(x, Dims{}, x.scalar_type());
  run(TENON_OP("nll_loss"), ops::state_of(x), {view_of(loss), view_of(total_weight)}, {view_of(x), view_of(target), view_of(weight)}, &attributes);
  if (recording) {
    recording.save(0, target);
    recording.save(1, weight);
    recording.save(2, total_weight);
    recording.output(loss);
  }
  if (attributes.reduction == LossReduction::kNone) return batched ? loss.view(target_sizes) : loss.view({});
  return loss;
}
Tensor nll_loss(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight, std::int64_t reduction, std::int64_t ignore_index) {
  return nll_loss_nd(input, target, weight, reduction, ignore_index);
}

Tensor cross_entropy_loss(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight, std::int64_t reduction,
                          std::int64_t ignore_index, double label_smoothing) {
  const std::int64_t dim = input.dim() == 1 ? 0 : 1;
  const Tensor logp = log_softmax(input, dim);
  const bool has_weight = weight && weight->defined();
  std::vector<std::int64_t> column(static_cast<std::size_t>(input.dim()), 1);
  column[static_cast<std::size_t>(dim)] = input.size(dim);
  if (target.is_floating_point() && target.sizes() == input.sizes()) {
    const std::int64_t classes = input.size(dim);
    Tensor wanted = target;
    if (label_smoothing > 0) wanted = target.mul(1 - label_smoothing).add(label_smoothing / static_cast<double>(classes));
    Tensor weighted = logp.mul(wanted);
    if (has_weight) weighted = weighted.mul(weight->view(column));
    const Tensor loss = weighted.sum(OptionalIntArrayRef(dim)).neg();
    if (reduction == Reduction::Mean) {
      const std::int64_t batch = input.numel() / classes;
      return loss.sum().div(Scalar(batch));
    }
    return reduced(loss, reduction);
  }
  const Tensor nll = nll_loss_nd(logp, target, weight, reduction, ignore_index);
  if (label_smoothing <= 0) return nll;
  const Tensor weighted = has_weight ? logp.mul(weight->view(column)) : logp;
  const Tensor ignored = target.eq(ignore_index);
  Tensor smooth = weighted.sum(OptionalIntArrayRef(dim)).neg().masked_fill(ignored, 0);
  if (reduction == Reduction::Mean) {
    if (has_weight) {
      const Tensor places = target.masked_fill(ignored, 0);
      const Tensor amounts = weight->index_select(0, places.reshape({-1})).view(places.sizes()).masked_fill(ignored, 0);
      smooth = smooth.sum().div(amounts.sum());
    } else {
      smooth = smooth.sum().div(ignored.logical_not().sum().to(smooth.scalar_type()));
    }
  } else {
    smooth = reduced(smooth, reduction);
  }
  const double share = label_smoothing / static_cast<double>(input.size(dim));
  return nll.mul(1 - label_smoothing).add(smooth.mul(share));
}

Tensor mse_loss(const Tensor& input, const Tensor& target, std::int64_t reduction) { return reduced(input.sub(target).square(), reduction); }
Tensor l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction) { return reduced(input.sub(target).abs(), reduction); }
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction, double beta) {
  if (beta < 0) throw Error("smooth_l1_loss does not support negative values for beta.");
  if (beta == 0) return l1_loss(input, target, reduction);
  const Tensor distance = input.sub(target).abs();
  return reduced(where(distance.lt(beta), distance.square().mul(0.5 / beta), distance.sub(0.5 * beta)), reduction);
}
Tensor huber_loss(const Tensor& input, const Tensor& target, std::int64_t reduction, double delta) {
  if (delta <= 0) throw Error("huber_loss does not support non-positive values for delta.");
  const Tensor distance = input.sub(target).abs();
  return reduced(where(distance.le(delta), distance.square().mul(0.5), distance.sub(0.5 * delta).mul(delta)), reduction);
}
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight, std::int64_t reduction) {
  if (input.sizes() != target.sizes()) {
    throw Error("Using a target size (" + to_string(target.sizes()) + ") that is different to the input size (" + to_string(input.sizes()) + ") is deprecated. Please ensure they have the same size.");
  }
  if (input.numel() > 0) {
    NoGradGuard no_grad;
    if (input.lt(0).logical_or(input.gt(1)).any().item<bool>()) throw Error("all elements of input should be between 0 and 1");
  }
  // Logarithms are held at -100, so that a certain mistake costs a finite amount.
  const Tensor yes = input.log().clamp_min(-100);
  const Tensor no = input.neg().log1p().clamp_min(-100);
  Tensor loss = target.sub(1).mul(no).sub(target.mul(yes));
  if (weight && weight->defined()) loss = loss.mul(*weight);
  return reduced(loss, reduction);
}
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight,
                                        const std::optional<Tensor>& pos_weight, std::int64_t reduction) {
  if (input.sizes() != target.sizes()) {
    throw Error("Target size (" + to_string(target.sizes()) + ") must be the same as input size (" + to_string(input.sizes()) + ")");
  }
  const Tensor negative = log_sigmoid(input);
  const Tensor rest = target.neg().add(1).mul(input);
  Tensor loss;
  if (pos_weight && pos_weight->defined()) {
    loss = rest.sub(pos_weight->sub(1).mul(target).add(1).mul(negative));
  } else {
    loss = rest.sub(negative);
  }
  if (weight && weight->defined()) loss = loss.mul(*weight);
  return reduced(loss, reduction);
}
Tensor kl_div(const Tensor& input, const Tensor& target, std::int64_t reduction, bool log_target) {
  if (log_target) return reduced(target.exp().mul(target.sub(input)), reduction);
  const Tensor entropy = where(target.gt(0), target.mul(target.clamp_min(1e-300).log()), Scalar(0.0));
  return reduced(entropy.sub(target.mul(input)), reduction);
}
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  return norm(a.sub(b).add(eps), p, -1, keepdim);
}
Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim, double eps) {
  const Dims sizes = broadcast_sizes(a.impl().sizes(), b.impl().sizes());
  const Tensor x = a.expand(sizes);
  const Tensor y = b.expand(sizes);
  const Tensor left = x.div(norm(x, 2, dim, true).clamp_min(eps));
  const Tensor right = y.div(norm(y, 2, dim, true).clamp_min(eps));
  return left.mul(right).sum(OptionalIntArrayRef(dim));
}

}  // namespace tenon
