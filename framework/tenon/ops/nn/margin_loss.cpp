// Losses of margins and counts, written as their formulas.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/nn/margin_loss.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/loss_reduction.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

#include <numbers>

namespace tenon {

using ops::reduced;

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                           std::int64_t reduction) {
  TENON_AUTOCAST(margin_ranking_loss, input1, input2, target, margin, reduction)
  return reduced("margin_ranking_loss", (-target * (input1 - input2) + margin).clamp_min(0), reduction);
}

Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin, std::int64_t reduction) {
  TENON_AUTOCAST(hinge_embedding_loss, self, target, margin, reduction)
  const Tensor zero = zeros_like(self);
  return reduced("hinge_embedding_loss",
                 where(target.eq(1), zero, (margin - self).clamp_min(0)) + where(target.eq(-1), zero, self), reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                             std::int64_t reduction) {
  TENON_AUTOCAST(cosine_embedding_loss, input1, input2, target, margin, reduction)
  const std::int64_t dim = target.dim();
  const double eps = 1e-12;
  const Tensor dot = (input1 * input2).sum({dim});
  const Tensor norms = ((input1 * input1).sum({dim}) + eps) * ((input2 * input2).sum({dim}) + eps);
  const Tensor cosine = dot / norms.sqrt();
  const Tensor zero = zeros_like(cosine);
  return reduced("cosine_embedding_loss",
                 where(target.eq(1), 1 - cosine, zero) + where(target.eq(-1), (cosine - margin).clamp_min(0), zero),
                 reduction);
}

Tensor soft_margin_loss(const Tensor& self, const Tensor& target, std::int64_t reduction) {
  TENON_AUTOCAST(soft_margin_loss, self, target, reduction)
  const Dtype dtype = result_type(self, target);
  const Tensor x = self.to(dtype), t = target.to(dtype);
  // The slope of log(1 + exp(z)) is a sigmoid; that of the parts would overflow before they cancel.
  ops::Recording recording = ops::record<2>("SoftMarginLossBackward0", {&x, &t}, [](ops::Backward& b) {
    const Tensor x = b.saved(0), t = b.saved(1);
    const Tensor share = b.grad() * (x * -t).sigmoid();
    if (b.needs(0)) b.set(0, share * -t);
    if (b.needs(1)) b.set(1, share * -x);
  });
  if (recording) {
    recording.save(0, x);
    recording.save(1, t);
  }
  Tensor loss;
  {
    NoGradGuard no_grad;
    loss = log1p((x * -t).exp());
  }
  recording.output(loss);
  return reduced("soft_margin_loss", loss, reduction);
}

Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                         const std::optional<Tensor>& weight, std::int64_t reduction) {
  TENON_AUTOCAST(multi_margin_loss, self, target, p, margin, weight, reduction)
  if (p.toDouble() != 1 && p.toDouble() != 2) throw Error("only p == 1 and p == 2 supported");
  const Tensor x = self.dim() < 2 ? self.reshape({1, -1}) : self;
  if (target.dim() > 1 || target.numel() != x.size(0)) {
    throw Error(
        "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
        "size). Expected target size [" +
        std::to_string(x.size(0)) + "], but got " + to_string(target.sizes()) + ". Input has shape " +
        to_string(self.sizes()) + ".");
  }
  const Tensor y = target.reshape({-1, 1});
  // relu() has no gradient at 0, where clamp_min() has one. The target itself does not count, however wide the margin.
  Tensor margins = (x - x.gather(1, y) + margin).relu().scatter(1, y, 0.0);
  if (p.toDouble() == 2) margins = margins.square();
  if (weight && weight->defined()) margins = margins * weight->index_select(0, y.flatten()).unsqueeze(1);
  const Tensor loss = margins.sum({1}) / static_cast<double>(x.size(1));
  return reduced("multi_margin_loss", target.dim() == 0 ? ops::as_owned(loss.squeeze(0)) : loss, reduction);
}

Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, std::int64_t reduction) {
  TENON_AUTOCAST(multilabel_margin_loss, self, target, reduction)
  const Tensor x = self.dim() < 2 ? self.reshape({1, -1}) : self;
  const Tensor y = self.dim() < 2 && target.dim() < 2 ? target.reshape({1, -1}) : target;
  if (x.sizes() != y.sizes()) {
    throw Error("inconsistent target size: " + to_string(target.sizes()) +
                " for input of size: " + to_string(self.sizes()));
  }
  if (y.numel() > 0 && ops::has_values(y) &&
      (y.min().item<std::int64_t>() < -1 || y.max().item<std::int64_t>() >= x.size(1))) {
    throw Error("multilabel_margin_loss: argument #2 'target' is out of range [-1, " + std::to_string(x.size(1) - 1) +
                "]");
  }
  // Labels count up to the first -1.
  const Tensor valid = y.lt(0).to(kInt64).cumsum(1).eq(0);
  const Tensor index = where(valid, y, zeros_like(y));
  const Tensor is_target = zeros(x.sizes(), x.options()).scatter_add(1, index, valid.to(x.scalar_type())).gt(0);
  const Tensor of_target = x.gather(1, index);  // (N, C)
  const Tensor margins = (1 - (of_target.unsqueeze(2) - x.unsqueeze(1))).relu();
  const Tensor counts =
      valid.unsqueeze(2).to(x.scalar_type()) * is_target.logical_not().unsqueeze(1).to(x.scalar_type());
  const Tensor loss = (margins * counts).sum({1, 2}) / static_cast<double>(x.size(1));
  return reduced("multilabel_margin_loss", self.dim() < 2 ? ops::as_owned(loss.squeeze(0)) : loss, reduction);
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const std::function<Tensor(const Tensor&, const Tensor&)>& distance,
                                         double margin, bool swap, std::int64_t reduction) {
  TENON_SCOPE(triplet_margin_with_distance_loss, anchor, positive, negative, distance, margin, swap, reduction)
  const Tensor to_positive = distance(anchor, positive);
  Tensor to_negative = distance(anchor, negative);
  if (swap) to_negative = minimum(to_negative, distance(positive, negative));
  return reduced("triplet_margin_loss", (to_positive - to_negative + margin).clamp_min(0), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, std::int64_t reduction) {
  TENON_AUTOCAST(triplet_margin_loss, anchor, positive, negative, margin, p, eps, swap, reduction)
  const auto distance = [&](const Tensor& a, const Tensor& b) { return pairwise_distance(a, b, p, eps); };
  return triplet_margin_with_distance_loss(anchor, positive, negative, distance, margin, swap, reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                        std::int64_t reduction) {
  TENON_AUTOCAST(poisson_nll_loss, input, target, log_input, full, eps, reduction)
  Tensor loss = log_input ? input.exp() - target * input : input - target * (input + eps).log();
  if (full) {
    // Stirling's approximation of log(target!).
    const Tensor safe = where(target.gt(1), target, ones_like(target));
    const Tensor stirling = safe * safe.log() - safe + 0.5 * (safe * (2 * std::numbers::pi)).log();
    loss = loss + where(target.gt(1), stirling, zeros_like(stirling));
  }
  return reduced("poisson_nll_loss", loss, reduction);
}

}  // namespace tenon
