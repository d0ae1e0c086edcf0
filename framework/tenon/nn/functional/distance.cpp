// Distances.
#include <tenon/nn/functional/distance.h>

#include <tenon/ops/linalg/distance.h>
#include <tenon/ops/linalg/pair_distances.h>

namespace tenon::nn::functional {

Tensor cosine_similarity(const Tensor& a, const Tensor& b, const CosineSimilarityFuncOptions& o) {
  return tenon::cosine_similarity(a, b, o.dim(), o.eps());
}
Tensor pairwise_distance(const Tensor& a, const Tensor& b, const PairwiseDistanceFuncOptions& o) {
  return tenon::pairwise_distance(a, b, o.p(), o.eps(), o.keepdim());
}
Tensor pdist(const Tensor& input, double p) { return tenon::pdist(input, p); }

}  // namespace tenon::nn::functional
