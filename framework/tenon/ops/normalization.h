// Normalisation, dropout and losses.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// How a loss is summed up, as libtorch's constants.
struct Reduction {
  enum Value : std::int64_t { None = 0, Mean = 1, Sum = 2 };
};

TENON_API Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape, const std::optional<Tensor>& weight = std::nullopt,
                            const std::optional<Tensor>& bias = std::nullopt, double eps = 1e-5, bool cudnn_enable = true);
TENON_API Tensor group_norm(const Tensor& input, std::int64_t groups, const std::optional<Tensor>& weight = std::nullopt,
                            const std::optional<Tensor>& bias = std::nullopt, double eps = 1e-5, bool cudnn_enabled = true);
TENON_API Tensor batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                            const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, bool training,
                            double momentum, double eps, bool cudnn_enabled = true);
TENON_API Tensor instance_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                               const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var,
                               bool use_input_stats, double momentum, double eps, bool cudnn_enabled = true);

TENON_API Tensor dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& dropout_(Tensor& input, double p, bool train);
TENON_API Tensor feature_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& feature_dropout_(Tensor& input, double p, bool train);
TENON_API Tensor alpha_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& alpha_dropout_(Tensor& input, double p, bool train);
TENON_API Tensor feature_alpha_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& feature_alpha_dropout_(Tensor& input, double p, bool train);

TENON_API Tensor nll_loss(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt,
                          std::int64_t reduction = Reduction::Mean, std::int64_t ignore_index = -100);
TENON_API Tensor nll_loss_nd(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt,
                             std::int64_t reduction = Reduction::Mean, std::int64_t ignore_index = -100);
TENON_API Tensor cross_entropy_loss(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt,
                                    std::int64_t reduction = Reduction::Mean, std::int64_t ignore_index = -100, double label_smoothing = 0.0);
TENON_API Tensor mse_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = Reduction::Mean);
TENON_API Tensor l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = Reduction::Mean);
TENON_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = Reduction::Mean, double beta = 1.0);
TENON_API Tensor huber_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = Reduction::Mean, double delta = 1.0);
TENON_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt,
                                      std::int64_t reduction = Reduction::Mean);
TENON_API Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt,
                                                  const std::optional<Tensor>& pos_weight = std::nullopt, std::int64_t reduction = Reduction::Mean);
TENON_API Tensor kl_div(const Tensor& input, const Tensor& target, std::int64_t reduction = Reduction::Mean, bool log_target = false);
TENON_API Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2, double eps = 1e-6, bool keepdim = false);
TENON_API Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim = 1, double eps = 1e-8);

}  // namespace tenon
