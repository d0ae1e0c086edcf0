// Options of losses, shared by modules and functional forms. `reduction` is kNone, kMean or kSum throughout.
#pragma once

#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/enum.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>

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
  using reduction_t = std::variant<enumtype::kNone, enumtype::kBatchMean, enumtype::kSum, enumtype::kMean>;
  KLDivLossOptions(reduction_t reduction = enumtype::kMean()) : reduction_(std::move(reduction)) {}  // NOLINT
  KLDivLossOptions(enumtype::kNone word) : reduction_(word) {}                                       // NOLINT
  KLDivLossOptions(enumtype::kMean word) : reduction_(word) {}                                       // NOLINT
  KLDivLossOptions(enumtype::kSum word) : reduction_(word) {}                                        // NOLINT
  KLDivLossOptions(enumtype::kBatchMean word) : reduction_(word) {}                                  // NOLINT
  TENON_ARG(reduction_t, reduction);
  TENON_ARG(bool, log_target) = false;
};
struct NLLLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(Tensor, weight) = {};
  TENON_ARG(std::int64_t, ignore_index) = -100;
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
};
struct CrossEntropyLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(Tensor, weight) = {};
  TENON_ARG(std::int64_t, ignore_index) = -100;
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
  TENON_ARG(double, label_smoothing) = 0.0;
};
struct BCELossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(Tensor, weight) = {};
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
};
struct BCEWithLogitsLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(Tensor, weight) = {};
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
  TENON_ARG(Tensor, pos_weight) = {};
};
struct SmoothL1LossOptions {
  using reduction_t = LossReductionWord;
  SmoothL1LossOptions(reduction_t reduction = enumtype::kMean()) : reduction_(std::move(reduction)) {}  // NOLINT
  SmoothL1LossOptions(enumtype::kNone word) : reduction_(word) {}                                       // NOLINT
  SmoothL1LossOptions(enumtype::kMean word) : reduction_(word) {}                                       // NOLINT
  SmoothL1LossOptions(enumtype::kSum word) : reduction_(word) {}                                        // NOLINT
  TENON_ARG(reduction_t, reduction);
  TENON_ARG(double, beta) = 1.0;
};
struct HuberLossOptions {
  using reduction_t = LossReductionWord;
  HuberLossOptions(reduction_t reduction = enumtype::kMean()) : reduction_(std::move(reduction)) {}  // NOLINT
  HuberLossOptions(enumtype::kNone word) : reduction_(word) {}                                       // NOLINT
  HuberLossOptions(enumtype::kMean word) : reduction_(word) {}                                       // NOLINT
  HuberLossOptions(enumtype::kSum word) : reduction_(word) {}                                        // NOLINT
  TENON_ARG(reduction_t, reduction);
  TENON_ARG(double, delta) = 1.0;
};
struct HingeEmbeddingLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(double, margin) = 1.0;
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
};
struct CosineEmbeddingLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(double, margin) = 0.0;
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
};
struct MarginRankingLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(double, margin) = 0.0;
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
};
struct MultiMarginLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(std::int64_t, p) = 1;
  TENON_ARG(double, margin) = 1.0;
  TENON_ARG(Tensor, weight) = Tensor();
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
};
struct MultiLabelSoftMarginLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(Tensor, weight) = Tensor();
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
};
struct TripletMarginLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(double, margin) = 1.0;
  TENON_ARG(double, p) = 2.0;
  TENON_ARG(double, eps) = 1e-6;
  TENON_ARG(bool, swap) = false;
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
};
struct TripletMarginWithDistanceLossOptions {
  using reduction_t = LossReductionWord;
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  TENON_ARG(std::optional<distance_function_t>, distance_function) = std::nullopt;
  TENON_ARG(double, margin) = 1.0;
  TENON_ARG(bool, swap) = false;
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
};
struct PoissonNLLLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(bool, log_input) = true;
  TENON_ARG(bool, full) = false;
  TENON_ARG(double, eps) = 1e-8;
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
};
/// Names and defaults of PyTorch's Python; its C++ front end has no such loss.
struct GaussianNLLLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(bool, full) = false;  ///< with the constant log(2 pi) / 2
  TENON_ARG(double, eps) = 1e-6;  ///< the least variance
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
};
struct CTCLossOptions {
  using reduction_t = LossReductionWord;
  TENON_ARG(std::int64_t, blank) = 0;
  TENON_ARG(reduction_t, reduction) = enumtype::kMean();
  TENON_ARG(bool, zero_infinity) = false;
};

}  // namespace tenon::nn
