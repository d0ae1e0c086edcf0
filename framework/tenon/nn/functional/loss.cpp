// Functional losses, as their formulas read.
#include <tenon/nn/functional/loss.h>

#include <tenon/autograd/autograd.h>
#include <tenon/ops/nn/ctc.h>
#include <tenon/ops/nn/margin_loss.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/support/loss_reduction.h>
#include <tenon/ops/support/values.h>
#include <tenon/tensor/libtorch/warning.h>

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <sstream>

namespace tenon::nn::functional {
namespace {

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
  const Tensor divergence = tenon::kl_div(input, target, enumtype::reduction_get_enum(o.reduction()), o.log_target());
  return o.reduction().is<enumtype::kBatchMean>() && input.dim() > 0 ? divergence / static_cast<double>(input.size(0))
                                                                     : divergence;
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
  return tenon::hinge_embedding_loss(input, target, o.margin(), enumtype::reduction_get_enum(o.reduction()));
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& o) {
  return tenon::cosine_embedding_loss(a, b, target, o.margin(), enumtype::reduction_get_enum(o.reduction()));
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                           const MarginRankingLossFuncOptions& o) {
  return tenon::margin_ranking_loss(a, b, target, o.margin(), enumtype::reduction_get_enum(o.reduction()));
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossFuncOptions& o) {
  return tenon::multi_margin_loss(input, target, o.p(), o.margin(), o.weight(),
                                  enumtype::reduction_get_enum(o.reduction()));
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, const MultilabelMarginLossFuncOptions& o) {
  return tenon::multilabel_margin_loss(input, target, enumtype::reduction_get_enum(o.reduction()));
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& o) {
  const auto log_sigmoid = [](const Tensor& x) { return tenon::log_sigmoid(x); };
  Tensor loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input));
  if (o.weight().defined()) loss = loss * o.weight();
  // Over the dimension of the input's classes, and by their number, wherever a target or a weight broadcasts them.
  const std::int64_t dim = input.dim() - 1;
  const Tensor mean = dim < 0 || (dim == loss.dim() - 1 && input.size(dim) == loss.size(dim))
                          ? loss.mean({-1})
                          : loss.sum({dim}) / input.size(dim);
  return ops::reduced("multilabel_soft_margin_loss", mean, enumtype::reduction_get_enum(o.reduction()));
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, const SoftMarginLossFuncOptions& o) {
  return tenon::soft_margin_loss(input, target, enumtype::reduction_get_enum(o.reduction()));
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& o) {
  return tenon::triplet_margin_loss(anchor, positive, negative, o.margin(), o.p(), o.eps(), o.swap(),
                                    enumtype::reduction_get_enum(o.reduction()));
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& o) {
  const auto default_distance = [](const Tensor& a, const Tensor& b) { return tenon::pairwise_distance(a, b); };
  return tenon::triplet_margin_with_distance_loss(anchor, positive, negative,
                                                  o.distance_function() ? *o.distance_function() : default_distance,
                                                  o.margin(), o.swap(), enumtype::reduction_get_enum(o.reduction()));
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLLossFuncOptions& o) {
  return tenon::poisson_nll_loss(input, target, o.log_input(), o.full(), o.eps(),
                                 enumtype::reduction_get_enum(o.reduction()));
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
  throw Error(
      fmt::format("gaussian_nll_loss: var is of incorrect size {} for an input of {}: it has the input's sizes, "
                  "a 1 instead of one of them, or all but the last",
                  text(given), text(sizes)));
}

}  // namespace

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossFuncOptions& o) {
  if (var.numel() > 0 && ops::has_values(var) && var.detach().lt(0).any().item<bool>())
    throw Error("gaussian_nll_loss: var has negative entry/entries");
  Tensor least = fitted(var, input).clone();
  {
    NoGradGuard no_grad;
    least.clamp_(o.eps());
  }
  Tensor loss = 0.5 * (least.log() + (input - target).square() / least);
  if (o.full()) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return ops::reduced("gaussian_nll_loss", loss, enumtype::reduction_get_enum(o.reduction()));
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, double var, const GaussianNLLLossFuncOptions& o) {
  return gaussian_nll_loss(input, target, tenon::full_like(input, var), o);
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& o) {
  return tenon::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank(),
                         enumtype::reduction_get_enum(o.reduction()), o.zero_infinity());
}

}  // namespace tenon::nn::functional
