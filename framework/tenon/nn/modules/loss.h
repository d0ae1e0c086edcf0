// Losses as modules.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/distance_options.h>
#include <tenon/nn/options/loss_options.h>

namespace tenon::nn {

// forward(input, target) is the function in nn/functional/loss.h, with its errors. Reduced, a loss has no dimension;
// with kNone it has the sizes named. N may be missing.
#define TENON_LOSS(Name)                                                             \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {                     \
   public:                                                                           \
    explicit Name##Impl(Name##Options options = {}) : options(std::move(options)) {} \
    void reset() override {}                                                         \
    TENON_API void pretty_print(std::ostream& stream) const override;                \
    TENON_API Tensor forward(const Tensor& input, const Tensor& target);             \
    Name##Options options;                                                           \
  };                                                                                 \
  TENON_LIBRARY_MODULE(Name);
/// |input - target|, of their sizes.
TENON_LOSS(L1Loss)
/// (input - target)^2, of their sizes.
TENON_LOSS(MSELoss)
/// target * (log target - input), of their sizes; the input holds logarithms, and the target too with log_target.
TENON_LOSS(KLDivLoss)
/// d^2 / (2 beta) where d = |input - target| is below beta, else d - beta / 2; of their sizes. Throws Error for a beta
/// below 0. Girshick, 2015.
TENON_LOSS(SmoothL1Loss)
/// d^2 / 2 where d = |input - target| is at most delta, else delta * (d - delta / 2); of their sizes. Throws Error
/// unless delta is above 0. Huber, 1964.
TENON_LOSS(HuberLoss)
/// x where the target is 1, max(0, margin - x) where it is -1; of their sizes.
TENON_LOSS(HingeEmbeddingLoss)
/// Input (N, C), classes (N): the sum over the other classes of weight * max(0, margin - x[class] + x[i])^p / C, (N).
/// Throws Error unless p is 1 or 2, and where the sizes do not fit.
TENON_LOSS(MultiMarginLoss)
/// Input (N, C), target (N, C) of the classes up to its first -1: sums of max(0, 1 - (x[class] - x[i])) / C, (N).
/// Throws Error for other sizes, and a target that is not a class.
TENON_LOSS(MultiLabelMarginLoss)
/// log(1 + exp(-target * input)), target of 1 and -1; of their sizes.
TENON_LOSS(SoftMarginLoss)
/// exp(x) - target * x, or x - target * log(x + eps) without log_input; of their sizes.
TENON_LOSS(PoissonNLLLoss)
#undef TENON_LOSS

// As above; the weight is a buffer, so that it moves with the module.
#define TENON_LOSS(Name)                                                                               \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {                                       \
   public:                                                                                             \
    explicit Name##Impl(Name##Options given = {}) : options(std::move(given)) { Name##Impl::reset(); } \
    TENON_API void reset() override;                                                                   \
    TENON_API void pretty_print(std::ostream& stream) const override;                                  \
    TENON_API Tensor forward(const Tensor& input, const Tensor& target);                               \
    Name##Options options;                                                                             \
    Tensor weight;                                                                                     \
  };                                                                                                   \
  TENON_LIBRARY_MODULE(Name);
/// -input[target] * weight[target]: input (N, C, …) of log-probabilities, target (N, …) of classes (int64), weight (C)
/// or undefined -> (N, …). Throws Error where the sizes do not fit, and for a class out of range.
TENON_LOSS(NLLLoss)
/// NLLLoss of log_softmax(input) with label smoothing: input (N, C, …), target (N, …) of classes (int64), or
/// probabilities of the input's sizes -> (N, …). Throws Error as NLLLoss.
TENON_LOSS(CrossEntropyLoss)
/// -(t log x + (1 - t) log(1 - x)), logarithms kept above -100; of their sizes. Throws Error for different sizes and,
/// on the host only, for x outside of 0 to 1.
TENON_LOSS(BCELoss)
/// The mean over classes of BCEWithLogitsLoss: input and target (N, C), weight (C) or undefined -> (N).
TENON_LOSS(MultiLabelSoftMarginLoss)
#undef TENON_LOSS

class TENON_EXPORT BCEWithLogitsLossImpl : public Cloneable<BCEWithLogitsLossImpl> {
 public:
  explicit BCEWithLogitsLossImpl(BCEWithLogitsLossOptions given = {}) : options(std::move(given)) {
    BCEWithLogitsLossImpl::reset();
  }
  TENON_API void reset() override;
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// See functional::binary_cross_entropy_with_logits(); input and target of the same sizes.
  TENON_API Tensor forward(const Tensor& input, const Tensor& target);
  BCEWithLogitsLossOptions options;
  Tensor weight;
  Tensor pos_weight;
};
TENON_LIBRARY_MODULE(BCEWithLogitsLoss);

// Of three tensors, in the order named.
#define TENON_LOSS(Name)                                                             \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {                     \
   public:                                                                           \
    explicit Name##Impl(Name##Options options = {}) : options(std::move(options)) {} \
    void reset() override {}                                                         \
    TENON_API void pretty_print(std::ostream& stream) const override;                \
    TENON_API Tensor forward(const Tensor& a, const Tensor& b, const Tensor& c);     \
    Name##Options options;                                                           \
  };                                                                                 \
  TENON_LIBRARY_MODULE(Name);
/// (N, D), (N, D), target (N) of 1 and -1, or all without N: 1 - cos where the target is 1, else max(0, cos - margin).
TENON_LOSS(CosineEmbeddingLoss)
/// input1, input2, target of 1 and -1, broadcast: max(0, -target * (input1 - input2) + margin).
TENON_LOSS(MarginRankingLoss)
/// anchor, positive, negative (…, D) -> (…): max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm
/// of the difference. Balntas et al., 2016.
TENON_LOSS(TripletMarginLoss)
/// TripletMarginLoss with a distance function of the caller's, pairwise_distance() unless given.
TENON_LOSS(TripletMarginWithDistanceLoss)
/// input, target, variance: (log(var) + (input - target)^2 / var) / 2, of the input's sizes. Throws Error for a
/// negative variance, or one of sizes that do not fit.
TENON_LOSS(GaussianNLLLoss)
#undef TENON_LOSS

class TENON_EXPORT CTCLossImpl : public Cloneable<CTCLossImpl> {
 public:
  explicit CTCLossImpl(const CTCLossOptions& options = {}) : options(options) {}
  void reset() override {}
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// See tenon::ctc_loss() on sizes, dtypes and errors.
  TENON_API Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                           const Tensor& target_lengths);
  CTCLossOptions options;
};
TENON_LIBRARY_MODULE(CTCLoss);

#define TENON_DISTANCE(Name)                                                     \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {                 \
   public:                                                                       \
    explicit Name##Impl(const Name##Options& options = {}) : options(options) {} \
    void reset() override {}                                                     \
    TENON_API void pretty_print(std::ostream& stream) const override;            \
    TENON_API Tensor forward(const Tensor& a, const Tensor& b);                  \
    Name##Options options;                                                       \
  };                                                                             \
  TENON_LIBRARY_MODULE(Name);
/// a . b / (max(|a|, eps) max(|b|, eps)) along `dim`, without that dim; a and b are broadcast. Throws Error unless one
/// is floating.
TENON_DISTANCE(CosineSimilarity)
/// The p-norm of a - b + eps along the last dim, (…, D) -> (…) or with keepdim (…, 1); a and b are broadcast, and
/// integers give the default dtype.
TENON_DISTANCE(PairwiseDistance)
#undef TENON_DISTANCE

}  // namespace tenon::nn
