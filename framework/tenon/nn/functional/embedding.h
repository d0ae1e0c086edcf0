// Functional embeddings and one-hot vectors.
#pragma once

#include <tenon/nn/modules/embedding.h>

namespace tenon::nn::functional {

struct EmbeddingFuncOptions {
  TENON_ARG(std::optional<std::int64_t>, padding_idx) = std::nullopt;
  TENON_ARG(std::optional<double>, max_norm) = std::nullopt;
  TENON_ARG(double, norm_type) = 2.0;
  TENON_ARG(bool, scale_grad_by_freq) = false;
  TENON_ARG(bool, sparse) = false;
};
struct EmbeddingBagFuncOptions {
  TENON_ARG(Tensor, offsets) = Tensor();
  TENON_ARG(std::optional<double>, max_norm) = std::nullopt;
  TENON_ARG(double, norm_type) = 2.0;
  TENON_ARG(bool, scale_grad_by_freq) = false;
  TENON_ARG(EmbeddingBagMode, mode) = enumtype::kMean();
  TENON_ARG(bool, sparse) = false;
  TENON_ARG(Tensor, per_sample_weights) = Tensor();
  TENON_ARG(bool, include_last_offset) = false;
  TENON_ARG(std::optional<std::int64_t>, padding_idx) = std::nullopt;
};

/// Rows of `weight` (rows, features) by number: any sizes -> those sizes and features behind them. With max_norm longer
/// rows that are looked up are first scaled to it, in `weight` itself.
TENON_API Tensor embedding(const Tensor& indices, const Tensor& weight, const EmbeddingFuncOptions& options = {});
/// Sum, mean or maximum of the rows of each bag: see EmbeddingBag.
TENON_API Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& options = {});
/// num_classes = -1: one more than the largest index.
TENON_API Tensor one_hot(const Tensor& indices, std::int64_t num_classes = -1);

}  // namespace tenon::nn::functional
