// Options of losses, shared by modules and functional forms. `reduction` is kNone, kMean or kSum throughout.
#pragma once

#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/enum.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace tenon::nn {

using reduction_t = LossReductionWord;

/// Losses whose only option is the reduction: MSELossOptions(kNone).
#define TENON_REDUCTION_OPTIONS(Name)                             \
  struct Name {                                                   \
    using reduction_t = LossReductionWord;                        \
    Name(reduction_t reduction = enumtype::kMean()) /* NOLINT */  \
        : reduction_(std::move(reduction)) {}                     \
    Name(enumtype::kNone word) : reduction_(word) {} /* NOLINT */ \
    Name(enumtype::kMean word) : reduction_(word) {} /* NOLINT */ \
    Name(enumtype::kSum word) : reduction_(word) {}  /* NOLINT */ \
    TENON_ARG(reduction_t, reduction);                            \
  };
TENON_REDUCTION_OPTIONS(L1LossOptions)
TENON_REDUCTION_OPTIONS(MSELossOptions)
TENON_REDUCTION_OPTIONS(MultiLabelMarginLossOptions)
TENON_REDUCTION_OPTIONS(SoftMarginLossOptions)
#undef TENON_REDUCTION_OPTIONS

struct KLDivLossOptions {
  using reduction_t = enumtype::OneOf<enumtype::kNone, enumtype::kBatchMean, enumtype::kSum, enumtype::kMean>;
  KLDivLossOptions(reduction_t reduction = enumtype::kMean()) : reduction_(std::move(reduction)) {}  // NOLINT
  KLDivLossOptions(enumtype::kNone word) : reduction_(word) {}                                       // NOLINT
  KLDivLossOptions(enumtype::kMean word) : reduction_(word) {}                                       // NOLINT
  KLDivLossOptions(enumtype::kSum word) : reduction_(word) {}                                        // NOLINT
  KLDivLossOptions(enumtype::kBatchMean word) : reduction_(word) {}                                  // NOLINT
  TENON_ARG(reduction_t, reduction);    ///< kNone, kMean, kSum, or kBatchMean: the sum by the batch's size
  TENON_ARG(bool, log_target) = false;  ///< whether the target holds logarithms
};
struct NLLLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(Tensor, weight) = {};                         ///< a factor for each class; undefined for none
  TENON_ARG(std::int64_t, ignore_index) = -100;           ///< the class that counts for nothing
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
};
struct CrossEntropyLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(Tensor, weight) = {};                         ///< a factor for each class; undefined for none
  TENON_ARG(std::int64_t, ignore_index) = -100;           ///< the class that counts for nothing
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
  TENON_ARG(double, label_smoothing) = 0.0;               ///< the share of each target that all classes share, 0 to 1
};
struct BCELossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(Tensor, weight) = {};                         ///< a factor of each term, broadcast; undefined for none
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
};
struct BCEWithLogitsLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(Tensor, weight) = {};                         ///< a factor of each term, broadcast; undefined for none
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
  TENON_ARG(Tensor, pos_weight) = {};                     ///< a factor of the positive terms, one for each class
};
struct SmoothL1LossOptions {
  using reduction_t = LossReductionWord;
  SmoothL1LossOptions(reduction_t reduction = enumtype::kMean()) : reduction_(std::move(reduction)) {}  // NOLINT
  SmoothL1LossOptions(enumtype::kNone word) : reduction_(word) {}                                       // NOLINT
  SmoothL1LossOptions(enumtype::kMean word) : reduction_(word) {}                                       // NOLINT
  SmoothL1LossOptions(enumtype::kSum word) : reduction_(word) {}                                        // NOLINT
  TENON_ARG(reduction_t, reduction);  ///< what becomes of the terms: kNone, kMean or kSum
  TENON_ARG(double, beta) = 1.0;      ///< where the square turns into a line
};
struct HuberLossOptions {
  using reduction_t = LossReductionWord;
  HuberLossOptions(reduction_t reduction = enumtype::kMean()) : reduction_(std::move(reduction)) {}  // NOLINT
  HuberLossOptions(enumtype::kNone word) : reduction_(word) {}                                       // NOLINT
  HuberLossOptions(enumtype::kMean word) : reduction_(word) {}                                       // NOLINT
  HuberLossOptions(enumtype::kSum word) : reduction_(word) {}                                        // NOLINT
  TENON_ARG(reduction_t, reduction);  ///< what becomes of the terms: kNone, kMean or kSum
  TENON_ARG(double, delta) = 1.0;     ///< where the square turns into a line
};
struct HingeEmbeddingLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(double, margin) = 1.0;                        ///< how far apart both have to be
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
};
struct CosineEmbeddingLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(double, margin) = 0.0;                        ///< how far apart both have to be
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
};
struct MarginRankingLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(double, margin) = 0.0;                        ///< how far apart both have to be
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
};
struct MultiMarginLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(std::int64_t, p) = 1;                         ///< the power of the terms, 1 or 2
  TENON_ARG(double, margin) = 1.0;                        ///< how far apart both have to be
  TENON_ARG(Tensor, weight) = Tensor();                   ///< a factor for each class; undefined for none
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
};
struct MultiLabelSoftMarginLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(Tensor, weight) = Tensor();                   ///< a factor for each class; undefined for none
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
};
struct TripletMarginLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(double, margin) = 1.0;  ///< how far apart both have to be
  TENON_ARG(double, p) = 2.0;       ///< of the p-norm
  TENON_ARG(double, eps) = 1e-6;    ///< added to the difference
  TENON_ARG(bool, swap) = false;    ///< take the smaller distance of the negative to the anchor and to the positive
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
};
struct TripletMarginWithDistanceLossOptions {
  using reduction_t = LossReductionWord;
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  TENON_ARG(std::optional<distance_function_t>, distance_function) = std::nullopt;  ///< in place of pairwise_distance()
  TENON_ARG(double, margin) = 1.0;                                                  ///< how far apart both have to be
  TENON_ARG(bool, swap) = false;  ///< take the smaller distance of the negative to the anchor and to the positive
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
};
struct PoissonNLLLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(bool, log_input) = true;                      ///< whether the input holds logarithms
  TENON_ARG(bool, full) = false;                          ///< add the constant term
  TENON_ARG(double, eps) = 1e-8;                          ///< added to the input before its logarithm
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
};
/// Names and defaults of PyTorch's Python; its C++ front end has no such loss.
struct GaussianNLLLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(bool, full) = false;                          ///< with the constant log(2 pi) / 2
  TENON_ARG(double, eps) = 1e-6;                          ///< the least variance
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
};
struct CTCLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(std::int64_t, blank) = 0;                     ///< the class that stands for no label
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();  ///< what becomes of the terms: kNone, kMean or kSum
  TENON_ARG(bool, zero_infinity) = false;                 ///< make infinite losses and their gradients 0
};

}  // namespace tenon::nn
