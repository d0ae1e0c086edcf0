// Distances: cosine similarity along a dimension, p-norm of differences.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/distance_options.h>
#include <tenon/tensor/tensor.h>

namespace tenon::nn::functional {

using CosineSimilarityFuncOptions = CosineSimilarityOptions;
using PairwiseDistanceFuncOptions = PairwiseDistanceOptions;

/// a . b / (max(|a|, eps) max(|b|, eps)) along `dim`; operands are broadcast. Throws Error unless one is floating.
TENON_API Tensor cosine_similarity(const Tensor& a, const Tensor& b, const CosineSimilarityFuncOptions& options = {});
/// The p-norm of a - b + eps along the last dim, (…, D) -> (…); a and b are broadcast, and integers give the
/// default dtype.
TENON_API Tensor pairwise_distance(const Tensor& a, const Tensor& b, const PairwiseDistanceFuncOptions& options = {});
/// The p-norm distances of all pairs of rows of (N, M), i < j: (N (N - 1) / 2).
TENON_API Tensor pdist(const Tensor& input, double p = 2.0);

}  // namespace tenon::nn::functional
