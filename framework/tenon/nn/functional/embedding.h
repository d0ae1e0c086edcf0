// Functional embeddings and one-hot vectors.
#pragma once

#include <tenon/nn/modules/embedding.h>

namespace tenon::nn::functional {

struct EmbeddingFuncOptions {
  /// The row that gets no gradient.
  TENON_ARG(std::optional<std::int64_t>, padding_idx) = std::nullopt;
  /// Rows read whose norm is above it are scaled down to it, in place.
  TENON_ARG(std::optional<double>, max_norm) = std::nullopt;
  TENON_ARG(double, norm_type) = 2.0;           ///< which norm: p of the p-norm
  TENON_ARG(bool, scale_grad_by_freq) = false;  ///< divide a row's gradient by how often the row was read
  TENON_ARG(bool, sparse) = false;              ///< has no effect: gradients are dense
};
struct EmbeddingBagFuncOptions {
  TENON_ARG(Tensor, offsets) = Tensor();  ///< where each bag begins in a vector of indices
  /// Rows read whose norm is above it are scaled down to it, in place.
  TENON_ARG(std::optional<double>, max_norm) = std::nullopt;
  TENON_ARG(double, norm_type) = 2.0;                     ///< which norm: p of the p-norm
  TENON_ARG(bool, scale_grad_by_freq) = false;            ///< divide a row's gradient by how often the row was read
  TENON_ARG(EmbeddingBagMode, mode) = enumtype::kMean();  ///< kSum, kMean or kMax of each bag
  TENON_ARG(bool, sparse) = false;                        ///< has no effect: gradients are dense
  TENON_ARG(Tensor, per_sample_weights) = Tensor();       ///< factors of the rows, of the indices' sizes; sums only
  TENON_ARG(bool, include_last_offset) = false;           ///< the last offset ends the last bag and begins none
  /// The row that gets no gradient, and counts in no bag.
  TENON_ARG(std::optional<std::int64_t>, padding_idx) = std::nullopt;
};

/// Rows of `weight` (rows, features) by number: any sizes -> those sizes and features behind them. With max_norm longer
/// rows that are looked up are first scaled to it, in `weight` itself. Throws Error for a padding_idx outside of the
/// table.
TENON_API Tensor embedding(const Tensor& indices, const Tensor& weight, const EmbeddingFuncOptions& options = {});
/// Sum, mean or maximum of the rows of each bag: see EmbeddingBag. Throws Error for an input of another rank than 1 and
/// 2, for offsets of a 2-D input, and none or of another rank of a 1-D one; for per_sample_weights of other sizes, or
/// in another mode than kSum; and for a padding_idx outside of the table.
TENON_API Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& options = {});
/// num_classes = -1: one more than the largest index.
TENON_API Tensor one_hot(const Tensor& indices, std::int64_t num_classes = -1);

}  // namespace tenon::nn::functional
