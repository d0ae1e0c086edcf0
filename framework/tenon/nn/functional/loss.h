// Functional losses: F::cross_entropy(logits, target, F::CrossEntropyFuncOptions().label_smoothing(0.1)).
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/loss_options.h>

namespace tenon::nn::functional {

using L1LossFuncOptions = L1LossOptions;
using MSELossFuncOptions = MSELossOptions;
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using MultiLabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using SoftMarginLossFuncOptions = SoftMarginLossOptions;
using KLDivFuncOptions = KLDivLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using HuberLossFuncOptions = HuberLossOptions;
using HingeEmbeddingLossFuncOptions = HingeEmbeddingLossOptions;
using CosineEmbeddingLossFuncOptions = CosineEmbeddingLossOptions;
using MarginRankingLossFuncOptions = MarginRankingLossOptions;
using MultiMarginLossFuncOptions = MultiMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
using PoissonNLLLossFuncOptions = PoissonNLLLossOptions;
using GaussianNLLLossFuncOptions = GaussianNLLLossOptions;
using CTCLossFuncOptions = CTCLossOptions;

/// |input - target|, reduced. Other sizes are broadcast, with a warning; so for the three below. Throws Error where
/// they do not broadcast.
TENON_API Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options = {});
/// (input - target)^2, reduced. Throws Error as l1_loss().
TENON_API Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options = {});
/// (x - t)^2 / (2 beta) where |x - t| is below beta, else |x - t| - beta / 2. Girshick, 2015. Throws Error for a beta
/// below 0.
TENON_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& options = {});
TENON_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& options,
                                double beta);
/// (x - t)^2 / 2 where |x - t| is at most delta, else delta * (|x - t| - delta / 2). Huber, 1964. Throws Error unless
/// delta is above 0.
TENON_API Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& options = {});
/// target * (log target - input), where the input holds logarithms, and the target too with log_target.
TENON_API Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& options = {});
/// -input[target] * weight[target], input (N, C, …) of log-probabilities, target (N, …) of classes, or (C) and one
/// class; ignore_index counts for nothing. The mean is divided by the sum of those weights. Throws Error for an input
/// of no dimension, and where the batch sizes differ.
TENON_API Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& options = {});
/// nll_loss() of log_softmax(input): input (N, C, …) or (C), target (N, …) of classes, or probabilities of the input's
/// sizes. Throws Error where the sizes do not fit.
TENON_API Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& options = {});
/// -(t log x + (1 - t) log(1 - x)), logarithms kept above -100. Throws Error for different sizes and, on the host only,
/// for x outside of 0 to 1.
TENON_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                                      const BinaryCrossEntropyFuncOptions& options = {});
/// binary_cross_entropy() of sigmoid(input), without its overflow; pos_weight, a factor of the positive terms, and
/// weight are broadcast. Throws Error unless input and target have the same sizes.
TENON_API Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                                  const BinaryCrossEntropyWithLogitsFuncOptions& options = {});
/// x where the target is 1, max(0, margin - x) where it is -1.
TENON_API Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                                      const HingeEmbeddingLossFuncOptions& options = {});
/// (N, D), (N, D), target (N) of 1 and -1, or all without N: 1 - cos where the target is 1, else max(0, cos - margin).
TENON_API Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                       const CosineEmbeddingLossFuncOptions& options = {});
/// max(0, -target * (input1 - input2) + margin), target of 1 and -1.
TENON_API Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                     const MarginRankingLossFuncOptions& options = {});
/// Sum over the other classes of max(0, margin - x[target] + x[i])^p / C, input (N, C) or (C). Throws Error unless p is
/// 1 or 2.
TENON_API Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultiMarginLossFuncOptions& options = {});
/// Sum of max(0, 1 - x[j] + x[i]) / C over every class j of the target (up to its first -1) and every i that is none of
/// them; input and target (N, C) or (C).
TENON_API Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                                        const MultilabelMarginLossFuncOptions& options = {});
/// Mean over classes of binary_cross_entropy_with_logits(), input and target (N, C).
TENON_API Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                             const MultilabelSoftMarginLossFuncOptions& options = {});
/// log(1 + exp(-target * input)), target of 1 and -1.
TENON_API Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                                  const SoftMarginLossFuncOptions& options = {});
/// max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of the difference; swap takes the nearer of
/// d(anchor, negative) and d(positive, negative). Balntas et al., 2016.
TENON_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                     const TripletMarginLossFuncOptions& options = {});
/// triplet_margin_loss() with a distance function of the caller's, pairwise_distance() unless given.
TENON_API Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                                   const TripletMarginWithDistanceLossFuncOptions& options = {});
/// exp(x) - target * x, or x - target * log(x + eps) without log_input; `full` adds Stirling's approximation of
/// log(target!) for targets above 1.
TENON_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                                  const PoissonNLLLossFuncOptions& options = {});
/// (log(var) + (input - target)^2 / var) / 2: how unlikely `target` is where `input` is expected with variance `var`,
/// which is of the input's sizes, or has 1 instead of one of them, or lacks the last one. As in PyTorch a variance
/// below eps counts as eps, and the gradient goes through as if it were. Throws Error for a negative variance or other
/// sizes.
TENON_API Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                                   const GaussianNLLLossFuncOptions& options = {});
/// One variance for all.
TENON_API Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, double var,
                                   const GaussianNLLLossFuncOptions& options = {});
/// See tenon::ctc_loss() on sizes, dtypes and errors.
TENON_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                          const Tensor& target_lengths, const CTCLossFuncOptions& options = {});

}  // namespace tenon::nn::functional
