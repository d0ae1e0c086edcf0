// Losses as modules.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/distance_options.h>
#include <tenon/nn/options/loss_options.h>

namespace tenon::nn {

/// forward(input, target)
#define TENON_LOSS(Name)                                                             \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {                     \
   public:                                                                           \
    explicit Name##Impl(Name##Options options = {}) : options(std::move(options)) {} \
    void reset() override {}                                                         \
    TENON_API void pretty_print(std::ostream& stream) const override;                \
    TENON_API Tensor forward(const Tensor& input, const Tensor& target);             \
    Name##Options options;                                                           \
  };                                                                                 \
  TENON_MODULE(Name);
TENON_LOSS(L1Loss)
TENON_LOSS(MSELoss)
TENON_LOSS(KLDivLoss)
TENON_LOSS(SmoothL1Loss)
TENON_LOSS(HuberLoss)
TENON_LOSS(HingeEmbeddingLoss)
TENON_LOSS(MultiMarginLoss)
TENON_LOSS(MultiLabelMarginLoss)
TENON_LOSS(SoftMarginLoss)
TENON_LOSS(PoissonNLLLoss)
#undef TENON_LOSS

/// forward(input, target); the weight is a buffer, so that it moves with the module.
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
  TENON_MODULE(Name);
TENON_LOSS(NLLLoss)
TENON_LOSS(CrossEntropyLoss)
TENON_LOSS(BCELoss)
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
TENON_MODULE(BCEWithLogitsLoss);

/// forward(a, b, c)
#define TENON_LOSS(Name)                                                             \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {                     \
   public:                                                                           \
    explicit Name##Impl(Name##Options options = {}) : options(std::move(options)) {} \
    void reset() override {}                                                         \
    TENON_API void pretty_print(std::ostream& stream) const override;                \
    TENON_API Tensor forward(const Tensor& a, const Tensor& b, const Tensor& c);     \
    Name##Options options;                                                           \
  };                                                                                 \
  TENON_MODULE(Name);
TENON_LOSS(CosineEmbeddingLoss)
TENON_LOSS(MarginRankingLoss)
TENON_LOSS(TripletMarginLoss)
TENON_LOSS(TripletMarginWithDistanceLoss)
TENON_LOSS(GaussianNLLLoss)
#undef TENON_LOSS

class TENON_EXPORT CTCLossImpl : public Cloneable<CTCLossImpl> {
 public:
  explicit CTCLossImpl(CTCLossOptions options = {}) : options(std::move(options)) {}
  void reset() override {}
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// See tenon::ctc_loss().
  TENON_API Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                           const Tensor& target_lengths);
  CTCLossOptions options;
};
TENON_MODULE(CTCLoss);

/// forward(a, b)
#define TENON_DISTANCE(Name)                                                     \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {                 \
   public:                                                                       \
    explicit Name##Impl(const Name##Options& options = {}) : options(options) {} \
    void reset() override {}                                                     \
    TENON_API void pretty_print(std::ostream& stream) const override;            \
    TENON_API Tensor forward(const Tensor& a, const Tensor& b);                  \
    Name##Options options;                                                       \
  };                                                                             \
  TENON_MODULE(Name);
TENON_DISTANCE(CosineSimilarity)
TENON_DISTANCE(PairwiseDistance)
#undef TENON_DISTANCE

}  // namespace tenon::nn
