// Distances.
#include <tenon/nn/functional/distance.h>

#include <tenon/ops/linalg/pair_distances.h>
#include <tenon/ops/ops.h>

namespace tenon::nn::functional {

Tensor cosine_similarity(const Tensor& a, const Tensor& b, const CosineSimilarityFuncOptions& o) {
  // Each norm is kept above eps, as PyTorch does since 1.12.
  const Tensor dot = (a * b).sum({o.dim()});
  const auto norm = [&](const Tensor& x) { return x.square().sum({o.dim()}).sqrt().clamp_min(o.eps()); };
  return dot / (norm(a) * norm(b));
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, const PairwiseDistanceFuncOptions& o) {
  return (a - b + o.eps()).norm(Scalar(o.p()), {-1}, o.keepdim());
}
Tensor pdist(const Tensor& input, double p) { return tenon::pdist(input, p); }

}  // namespace tenon::nn::functional
