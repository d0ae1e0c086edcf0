// Distances and divergences, out of other operators.
#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/linalg/distance.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/support/loss_reduction.h>
#include <tenon/ops/support/support.h>

namespace tenon {

using namespace ops;

Tensor kl_div(const Tensor& input, const Tensor& target, std::int64_t reduction, bool log_target) {
  TENON_AUTOCAST(kl_div, input, target, reduction, log_target)
  if (log_target) return reduced("kl_div", target.exp().mul(target.sub(input)), reduction);
  return reduced("kl_div", target.xlogy(target).sub(target.mul(input)), reduction);
}
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  TENON_SCOPE(pairwise_distance, a, b, p, eps, keepdim)
  return norm(a.sub(b).add(eps), p, -1, keepdim);
}
Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim, double eps) {
  TENON_AUTOCAST(cosine_similarity, a, b, dim, eps)
  const Dtype dtype = promote_types(a.scalar_type(), b.scalar_type());  // tensors without dimensions count in full
  if (!is_floating_point(dtype)) {
    throw Error(std::string("expected common dtype to be floating point, yet common dtype is ") + toString(dtype));
  }
  const Dims sizes = broadcast_sizes(a.impl().sizes(), b.impl().sizes());
  const Tensor x = a.to(dtype).expand(sizes);
  const Tensor y = b.to(dtype).expand(sizes);
  // At least eps, but with the slope of the norm itself, as in PyTorch.
  const auto length = [&](const Tensor& of) {
    const Tensor norm_of = norm(of, 2, dim, true);
    Tensor missing;
    {
      NoGradGuard no_grad;
      missing = norm_of.clamp_min(eps).sub(norm_of);
    }
    return norm_of.add(missing);
  };
  const Tensor left = x.div(length(x));
  const Tensor right = y.div(length(y));
  return left.mul(right).sum(OptionalIntArrayRef(dim));
}

}  // namespace tenon
