// Functional losses, as their formulas read.
#include <tenon/nn/functional/loss.h>

#include <tenon/autograd/autograd.h>
#include <tenon/nn/functional/distance.h>
#include <tenon/ops/ctc.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/warning.h>

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <sstream>

namespace tenon::nn::functional {
namespace {

template <class Word>
Tensor reduce(const Tensor& loss, const Word& reduction) {
  switch (enumtype::reduction_get_enum(reduction)) {
    case 0:
      return loss;
    case 2:
      return loss.sum();
    default:
      return loss.mean();
  }
}

std::string text(IntArrayRef sizes) {
  std::ostringstream stream;
  stream << sizes;
  return stream.str();
}

void warn_sizes(const char* name, const Tensor& input, const Tensor& target) {
  if (input.sizes() == target.sizes()) return;
  TENON_WARN(
      "Using a target size (", text(target.sizes()), ") that is different to the input size (", text(input.sizes()),
      "). This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size. (",
      name, ")");
}

}  // namespace

Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& o) {
  warn_sizes("l1_loss", input, target);
  return tenon::l1_loss(input, target, enumtype::reduction_get_enum(o.reduction()));
}

Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& o) {
  warn_sizes("mse_loss", input, target);
  return tenon::mse_loss(input, target, enumtype::reduction_get_enum(o.reduction()));
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& o) {
  return smooth_l1_loss(input, target, o, o.beta());
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& o, double beta) {
  warn_sizes("smooth_l1_loss", input, target);
  return tenon::smooth_l1_loss(input, target, enumtype::reduction_get_enum(o.reduction()), beta);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& o) {
  warn_sizes("huber_loss", input, target);
  return tenon::huber_loss(input, target, enumtype::reduction_get_enum(o.reduction()), o.delta());
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& o) {
  Tensor loss;
  if (o.log_target()) {
    loss = target.exp() * (target - input);
  } else {
    // 0 log 0 is 0: the logarithm sees 1 there.
    const Tensor safe = tenon::where(target.gt(0), target, tenon::ones_like(target));
    loss = tenon::where(target.gt(0), target * (safe.log() - input), tenon::zeros_like(target) * input);
  }
  const Tensor reduced = reduce(loss, o.reduction());
  return std::holds_alternative<enumtype::kBatchMean>(o.reduction()) && input.dim() > 0
             ? reduced / static_cast<double>(input.size(0))
             : reduced;
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& o) {
  if (input.dim() < 1) throw Error(fmt::format("Expected 1 or more dimensions (got {})", input.dim()));
  if (input.dim() > 1 && input.size(0) != target.size(0)) {
    throw Error(
        fmt::format("Expected input batch_size ({}) to match target batch_size ({}).", input.size(0), target.size(0)));
  }
  return tenon::nll_loss_nd(input, target, o.weight(), enumtype::reduction_get_enum(o.reduction()), o.ignore_index());
}

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& o) {
  return tenon::cross_entropy_loss(input, target, o.weight(), enumtype::reduction_get_enum(o.reduction()),
                                   o.ignore_index(), o.label_smoothing());
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const BinaryCrossEntropyFuncOptions& o) {
  if (input.sizes() != target.sizes()) {
    throw Error(fmt::format(
        "Using a target size ({}) that is different to the input size ({}) is deprecated. Please ensure they "
        "have the same size.",
        text(target.sizes()), text(input.sizes())));
  }
  return tenon::binary_cross_entropy(input, target, o.weight(), enumtype::reduction_get_enum(o.reduction()));
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& o) {
  if (target.sizes() != input.sizes()) {
    throw Error(
        fmt::format("Target size ({}) must be the same as input size ({})", text(target.sizes()), text(input.sizes())));
  }
  return tenon::binary_cross_entropy_with_logits(input, target, o.weight(), o.pos_weight(),
                                                 enumtype::reduction_get_enum(o.reduction()));
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingLossFuncOptions& o) {
  const Tensor zero = tenon::zeros_like(input);
  const Tensor loss =
      tenon::where(target.eq(1), zero, (o.margin() - input).clamp_min(0)) + tenon::where(target.eq(-1), zero, input);
  return reduce(loss, o.reduction());
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& o) {
  const std::int64_t dim = target.dim();
  const double eps = 1e-12;
  const Tensor dot = (a * b).sum({dim});
  const Tensor norms = ((a * a).sum({dim}) + eps) * ((b * b).sum({dim}) + eps);
  const Tensor cosine = dot / norms.sqrt();
  const Tensor zero = tenon::zeros_like(cosine);
  const Tensor loss = tenon::where(target.eq(1), 1 - cosine, zero) +
                      tenon::where(target.eq(-1), (cosine - o.margin()).clamp_min(0), zero);
  return reduce(loss, o.reduction());
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                           const MarginRankingLossFuncOptions& o) {
  return reduce((-target * (a - b) + o.margin()).clamp_min(0), o.reduction());
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossFuncOptions& o) {
  if (o.p() != 1 && o.p() != 2) throw Error("only p == 1 and p == 2 supported");
  const Tensor x = input.dim() == 1 ? input.unsqueeze(0) : input;
  const Tensor y = target.reshape({-1, 1});
  Tensor margins = (x - x.gather(1, y) + o.margin()).clamp_min(0);
  if (o.p() == 2) margins = margins.square();
  if (o.weight().defined()) margins = margins * o.weight().index_select(0, y.flatten()).unsqueeze(1);
  // The target itself does not count.
  const Tensor others = tenon::ones_like(margins).scatter(1, y, 0.0);
  const Tensor loss = (margins * others).sum({1}) / static_cast<double>(x.size(1));
  return reduce(input.dim() == 1 ? loss.squeeze(0) : loss, o.reduction());
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, const MultilabelMarginLossFuncOptions& o) {
  const Tensor x = input.dim() == 1 ? input.unsqueeze(0) : input;
  const Tensor y = target.dim() == 1 ? target.unsqueeze(0) : target;
  if (y.numel() > 0 && (y.min().item<std::int64_t>() < -1 || y.max().item<std::int64_t>() >= x.size(1))) {
    throw Error("multilabel_margin_loss: argument #2 'target' is out of range [-1, " + std::to_string(x.size(1) - 1) + "]");
  }
  // Labels count up to the first -1.
  const Tensor valid = y.lt(0).to(kInt64).cumsum(1).eq(0);
  const Tensor index = tenon::where(valid, y, tenon::zeros_like(y));
  const Tensor is_target = tenon::zeros(x.sizes(), x.options()).scatter_add(1, index, valid.to(x.scalar_type())).gt(0);
  const Tensor of_target = x.gather(1, index);  // (N, C)
  const Tensor margins = (1 - (of_target.unsqueeze(2) - x.unsqueeze(1))).clamp_min(0);
  const Tensor counts =
      (valid.unsqueeze(2).to(x.scalar_type()) * is_target.logical_not().unsqueeze(1).to(x.scalar_type()));
  const Tensor loss = (margins * counts).sum({1, 2}) / static_cast<double>(x.size(1));
  return reduce(input.dim() == 1 ? loss.squeeze(0) : loss, o.reduction());
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& o) {
  const auto log_sigmoid = [](const Tensor& x) { return tenon::log_sigmoid(x); };
  Tensor loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input));
  if (o.weight().defined()) loss = loss * o.weight();
  return reduce(loss.mean({-1}), o.reduction());
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, const SoftMarginLossFuncOptions& o) {
  return reduce(tenon::log1p((-target * input).exp()), o.reduction());
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& o) {
  const auto options = PairwiseDistanceOptions().p(o.p()).eps(o.eps());
  const Tensor to_positive = pairwise_distance(anchor, positive, options);
  Tensor to_negative = pairwise_distance(anchor, negative, options);
  if (o.swap()) to_negative = tenon::minimum(to_negative, pairwise_distance(positive, negative, options));
  return reduce((to_positive - to_negative + o.margin()).clamp_min(0), o.reduction());
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& o) {
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance_function() ? (*o.distance_function())(a, b) : functional::pairwise_distance(a, b);
  };
  const Tensor to_positive = distance(anchor, positive);
  Tensor to_negative = distance(anchor, negative);
  if (o.swap()) to_negative = tenon::minimum(to_negative, distance(positive, negative));
  return reduce((to_positive - to_negative + o.margin()).clamp_min(0), o.reduction());
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLLossFuncOptions& o) {
  Tensor loss = o.log_input() ? input.exp() - target * input : input - target * (input + o.eps()).log();
  if (o.full()) {
    // Stirling's approximation of log(target!).
    const Tensor safe = tenon::where(target.gt(1), target, tenon::ones_like(target));
    const Tensor stirling = safe * safe.log() - safe + 0.5 * (safe * (2 * std::numbers::pi)).log();
    loss = loss + tenon::where(target.gt(1), stirling, tenon::zeros_like(stirling));
  }
  return reduce(loss, o.reduction());
}

namespace {

/// The variance with sizes that broadcast to the input's.
Tensor fitted(const Tensor& var, const Tensor& input) {
  const IntArrayRef sizes = input.sizes(), given = var.sizes();
  if (given == sizes) return var;
  if (!sizes.empty() && given == sizes.slice(0, sizes.size() - 1)) return var.unsqueeze(-1);
  std::int64_t others = 0;  // PyTorch: what differs adds up to a single 1
  if (given.size() == sizes.size()) {
    for (std::size_t i = 0; i < sizes.size(); ++i) others += given[i] != sizes[i] ? given[i] : 0;
  }
  if (others == 1) return var;
  throw Error(fmt::format("gaussian_nll_loss: var is of incorrect size {} for an input of {}: it has the input's sizes, "
                          "a 1 instead of one of them, or all but the last",
                          text(given), text(sizes)));
}

}  // namespace

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossFuncOptions& o) {
  if (var.numel() > 0 && var.detach().lt(0).any().item<bool>())
    throw Error("gaussian_nll_loss: var has negative entry/entries");
  Tensor least = fitted(var, input).clone();
  {
    NoGradGuard no_grad;
    least.clamp_(o.eps());
  }
  Tensor loss = 0.5 * (least.log() + (input - target).square() / least);
  if (o.full()) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return reduce(loss, o.reduction());
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, double var, const GaussianNLLLossFuncOptions& o) {
  return gaussian_nll_loss(input, target, tenon::full_like(input, var), o);
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                const CTCLossFuncOptions& o) {
  return tenon::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank(),
                         enumtype::reduction_get_enum(o.reduction()), o.zero_infinity());
}

}  // namespace tenon::nn::functional
