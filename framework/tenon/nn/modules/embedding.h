// Embeddings: rows of a table by index, alone or reduced over bags.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/arg.h>
#include <tenon/nn/options/enum.h>

#include <cstdint>
#include <optional>

namespace tenon::nn {

struct EmbeddingOptions {
  EmbeddingOptions(std::int64_t num_embeddings, std::int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  TENON_ARG(std::int64_t, num_embeddings);                             ///< how many rows the table has
  TENON_ARG(std::int64_t, embedding_dim);                              ///< how many numbers a row has
  TENON_ARG(std::optional<std::int64_t>, padding_idx) = std::nullopt;  ///< this row is zero and gets no gradient
  TENON_ARG(std::optional<double>, max_norm) = std::nullopt;           ///< rows that are looked up are scaled to it
  TENON_ARG(double, norm_type) = 2.0;                                  ///< which norm: p of the p-norm
  TENON_ARG(bool, scale_grad_by_freq) = false;  ///< divide a row's gradient by how often the row was read
  TENON_ARG(bool, sparse) = false;              ///< gradients are dense here whatever it says
  TENON_ARG(Tensor, _weight) = Tensor();        ///< the table (num_embeddings, embedding_dim); drawn where undefined
};
struct EmbeddingFromPretrainedOptions {
  TENON_ARG(bool, freeze) = true;  ///< whether the table gets no gradient
  /// The row that gets no gradient.
  TENON_ARG(std::optional<std::int64_t>, padding_idx) = std::nullopt;
  /// Rows read whose norm is above it are scaled down to it, in place.
  TENON_ARG(std::optional<double>, max_norm) = std::nullopt;
  TENON_ARG(double, norm_type) = 2.0;           ///< which norm: p of the p-norm
  TENON_ARG(bool, scale_grad_by_freq) = false;  ///< divide a row's gradient by how often the row was read
  TENON_ARG(bool, sparse) = false;              ///< has no effect: gradients are dense
};

/// int64 of any sizes -> (…, embedding_dim).
class TENON_EXPORT EmbeddingImpl : public Cloneable<EmbeddingImpl> {
 public:
  EmbeddingImpl(std::int64_t num_embeddings, std::int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  TENON_API explicit EmbeddingImpl(EmbeddingOptions options);
  TENON_API void reset() override;
  /// Draws the weight anew from N(0, 1); the row of padding_idx is zero.
  TENON_API void reset_parameters();
  TENON_API void pretty_print(std::ostream& stream) const override;
  TENON_API Tensor forward(const Tensor& indices);

  EmbeddingOptions options;
  Tensor weight;  ///< (num_embeddings, embedding_dim)
};

extern template class Cloneable<EmbeddingImpl>;
class Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  using Impl = EmbeddingImpl;
  /// A module whose weight is `embeddings` itself, (rows, features), no copy. From then on it requires a gradient if
  /// `freeze` is off, else none. Throws Error for another rank.
  TENON_API static Embedding from_pretrained(const Tensor& embeddings,
                                             const EmbeddingFromPretrainedOptions& options = {});
};

using EmbeddingBagMode = enumtype::OneOf<enumtype::kSum, enumtype::kMean, enumtype::kMax>;

struct EmbeddingBagOptions {
  EmbeddingBagOptions(std::int64_t num_embeddings, std::int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  TENON_ARG(std::int64_t, num_embeddings);  ///< how many rows the table has
  TENON_ARG(std::int64_t, embedding_dim);   ///< how many numbers a row has
  /// Rows read whose norm is above it are scaled down to it, in place.
  TENON_ARG(std::optional<double>, max_norm) = std::nullopt;
  TENON_ARG(double, norm_type) = 2.0;                     ///< which norm: p of the p-norm
  TENON_ARG(bool, scale_grad_by_freq) = false;            ///< divide a row's gradient by how often the row was read
  TENON_ARG(EmbeddingBagMode, mode) = enumtype::kMean();  ///< kSum, kMean or kMax of each bag
  TENON_ARG(bool, sparse) = false;                        ///< has no effect: gradients are dense
  TENON_ARG(Tensor, _weight) = Tensor();         ///< the table (num_embeddings, embedding_dim); drawn where undefined
  TENON_ARG(bool, include_last_offset) = false;  ///< the last offset ends the last bag and begins none
  TENON_ARG(std::optional<std::int64_t>, padding_idx) = std::nullopt;  ///< left out of the reduction
};
struct EmbeddingBagFromPretrainedOptions {
  TENON_ARG(bool, freeze) = true;  ///< whether the table gets no gradient
  /// Rows read whose norm is above it are scaled down to it, in place.
  TENON_ARG(std::optional<double>, max_norm) = std::nullopt;
  TENON_ARG(double, norm_type) = 2.0;                     ///< which norm: p of the p-norm
  TENON_ARG(bool, scale_grad_by_freq) = false;            ///< divide a row's gradient by how often the row was read
  TENON_ARG(EmbeddingBagMode, mode) = enumtype::kMean();  ///< kSum, kMean or kMax of each bag
  TENON_ARG(bool, sparse) = false;                        ///< has no effect: gradients are dense
  TENON_ARG(bool, include_last_offset) = false;           ///< the last offset ends the last bag and begins none
  /// The row that gets no gradient, and counts in no bag.
  TENON_ARG(std::optional<std::int64_t>, padding_idx) = std::nullopt;
};

/// Indices (N, L), or (all) with offsets where bags begin -> (N, embedding_dim).
class TENON_EXPORT EmbeddingBagImpl : public Cloneable<EmbeddingBagImpl> {
 public:
  EmbeddingBagImpl(std::int64_t num_embeddings, std::int64_t embedding_dim)
      : EmbeddingBagImpl(EmbeddingBagOptions(num_embeddings, embedding_dim)) {}
  TENON_API explicit EmbeddingBagImpl(EmbeddingBagOptions options);
  TENON_API void reset() override;
  /// Draws the weight anew from N(0, 1); the row of padding_idx is zero.
  TENON_API void reset_parameters();
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// Bags (B, N) of row numbers, or a list of numbers and where each bag begins in it, `offsets` (B; B + 1 with
  /// include_last_offset) -> (B, features). `per_sample_weights` has the input's sizes. Throws Error for offsets with
  /// (B, N), a list without them, or weights in another mode than kSum.
  TENON_API Tensor forward(const Tensor& input, const Tensor& offsets = {}, const Tensor& per_sample_weights = {});

  EmbeddingBagOptions options;
  Tensor weight;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
};

extern template class Cloneable<EmbeddingBagImpl>;
class EmbeddingBag : public ModuleHolder<EmbeddingBagImpl> {
 public:
  using ModuleHolder<EmbeddingBagImpl>::ModuleHolder;
  using Impl = EmbeddingBagImpl;
  /// A module whose weight is `embeddings` itself, (rows, features), no copy. From then on it requires a gradient if
  /// `freeze` is off, else none. Throws Error for another rank.
  TENON_API static EmbeddingBag from_pretrained(const Tensor& embeddings,
                                                const EmbeddingBagFromPretrainedOptions& options = {});
};

}  // namespace tenon::nn
