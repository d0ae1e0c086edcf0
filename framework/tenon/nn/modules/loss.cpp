// Losses as modules: printing, and the call of the functional form.
#include <tenon/nn/modules/loss.h>

#include <tenon/nn/functional/distance.h>
#include <tenon/nn/functional/loss.h>
#include <tenon/nn/parameter.h>

#include <ostream>

namespace tenon::nn {

namespace F = functional;

#define TENON_LOSS(Name, function, printed)                                \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) {  \
    const ModuleScope scope(*this);                                        \
    return F::function(input, target, options);                            \
  }                                                                        \
  void Name##Impl::pretty_print(std::ostream& stream) const {              \
    stream << std::boolalpha << "tenon::nn::" #Name "(" << printed << ")"; \
  }
TENON_LOSS(L1Loss, l1_loss, "")
TENON_LOSS(MSELoss, mse_loss, "")
TENON_LOSS(KLDivLoss, kl_div, "")
TENON_LOSS(SmoothL1Loss, smooth_l1_loss, "")
TENON_LOSS(HuberLoss, huber_loss, "")
TENON_LOSS(HingeEmbeddingLoss, hinge_embedding_loss, "margin=" << options.margin())
TENON_LOSS(MultiLabelMarginLoss, multilabel_margin_loss, "")
TENON_LOSS(SoftMarginLoss, soft_margin_loss, "")
TENON_LOSS(MultiMarginLoss, multi_margin_loss,
           "p=" << options.p() << ", margin=" << options.margin() << ", weight=" << options.weight()
                << ", reduction=" << enumtype::get_enum_name(options.reduction()))
TENON_LOSS(PoissonNLLLoss, poisson_nll_loss, "")
TENON_LOSS(CosineSimilarity, cosine_similarity, "dim=" << options.dim() << ", eps=" << options.eps())
TENON_LOSS(PairwiseDistance, pairwise_distance,
           "p=" << options.p() << ", eps=" << options.eps() << ", keepdim=" << options.keepdim())
#undef TENON_LOSS

#define TENON_LOSS(Name, function)                                                                         \
  void Name##Impl::reset() { weight = register_buffer("weight", given_buffer(options.weight(), weight)); } \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) {                                  \
    const ModuleScope scope(*this);                                                                        \
    Name##Options current = options;                                                                       \
    current.weight(weight);                                                                                \
    return F::function(input, target, current);                                                            \
  }                                                                                                        \
  void Name##Impl::pretty_print(std::ostream& stream) const { stream << "tenon::nn::" #Name "()"; }
TENON_LOSS(NLLLoss, nll_loss)
TENON_LOSS(CrossEntropyLoss, cross_entropy)
TENON_LOSS(BCELoss, binary_cross_entropy)
TENON_LOSS(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss)
#undef TENON_LOSS

void BCEWithLogitsLossImpl::reset() {
  weight = register_buffer("weight", given_buffer(options.weight(), weight));
  pos_weight = register_buffer("pos_weight", given_buffer(options.pos_weight(), pos_weight));
}
Tensor BCEWithLogitsLossImpl::forward(const Tensor& input, const Tensor& target) {
  const ModuleScope scope(*this);
  BCEWithLogitsLossOptions current = options;
  current.weight(weight).pos_weight(pos_weight);
  return F::binary_cross_entropy_with_logits(input, target, current);
}
void BCEWithLogitsLossImpl::pretty_print(std::ostream& stream) const { stream << "tenon::nn::BCEWithLogitsLoss()"; }

void CTCLossImpl::pretty_print(std::ostream& stream) const { stream << "tenon::nn::CTCLoss()"; }
Tensor CTCLossImpl::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                            const Tensor& target_lengths) {
  const ModuleScope scope(*this);
  return F::ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
}

#define TENON_LOSS(Name, function, printed)                                       \
  Tensor Name##Impl::forward(const Tensor& a, const Tensor& b, const Tensor& c) { \
    const ModuleScope scope(*this);                                               \
    return F::function(a, b, c, options);                                         \
  }                                                                               \
  void Name##Impl::pretty_print(std::ostream& stream) const {                     \
    stream << std::boolalpha << "tenon::nn::" #Name "(" << printed << ")";        \
  }
TENON_LOSS(CosineEmbeddingLoss, cosine_embedding_loss, "margin=" << options.margin())
TENON_LOSS(MarginRankingLoss, margin_ranking_loss, "")
TENON_LOSS(TripletMarginLoss, triplet_margin_loss,
           "margin=" << options.margin() << ", p=" << options.p() << ", eps=" << options.eps()
                     << ", swap=" << options.swap())
TENON_LOSS(TripletMarginWithDistanceLoss, triplet_margin_with_distance_loss,
           "margin=" << options.margin() << ", swap=" << options.swap())
TENON_LOSS(GaussianNLLLoss, gaussian_nll_loss, "")
#undef TENON_LOSS

template class Cloneable<L1LossImpl>;
template class Cloneable<MSELossImpl>;
template class Cloneable<KLDivLossImpl>;
template class Cloneable<SmoothL1LossImpl>;
template class Cloneable<HuberLossImpl>;
template class Cloneable<HingeEmbeddingLossImpl>;
template class Cloneable<MultiMarginLossImpl>;
template class Cloneable<MultiLabelMarginLossImpl>;
template class Cloneable<SoftMarginLossImpl>;
template class Cloneable<PoissonNLLLossImpl>;
template class Cloneable<NLLLossImpl>;
template class Cloneable<CrossEntropyLossImpl>;
template class Cloneable<BCELossImpl>;
template class Cloneable<MultiLabelSoftMarginLossImpl>;
template class Cloneable<BCEWithLogitsLossImpl>;
template class Cloneable<CosineEmbeddingLossImpl>;
template class Cloneable<MarginRankingLossImpl>;
template class Cloneable<TripletMarginLossImpl>;
template class Cloneable<TripletMarginWithDistanceLossImpl>;
template class Cloneable<GaussianNLLLossImpl>;
template class Cloneable<CTCLossImpl>;
template class Cloneable<CosineSimilarityImpl>;
template class Cloneable<PairwiseDistanceImpl>;

}  // namespace tenon::nn
