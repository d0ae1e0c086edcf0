// Rows of the gradient table: normalisations. Their second derivatives are steep, so differences are coarser.
#include "gradient_case.h"

namespace tenon::test {

using List = std::vector<Tensor>;

std::vector<GradientCase> normalization_gradients() {
  const auto normalization = [](std::string name, Function function, std::vector<std::int64_t> input,
                                std::int64_t channels) {
    std::vector<std::int64_t> nothing = input;
    nothing[0] = 0;
    return of_tensors(std::move(name), std::move(function), {{input, -1, 1}, {{channels}, 0.5, 1}, {{channels}, -1, 1}})
        .empty({nothing, {channels}, {channels}})
        .tolerance(1e-4);
  };
  const Tensor mean = zeros({2}, kFloat64);
  const Tensor variance = ones({2}, kFloat64);
  return {
      normalization(
          "layer_norm", [](const List& x) { return layer_norm(x[0], {4}, x[1], x[2]); }, {3, 4}, 4),
      normalization(
          "group_norm", [](const List& x) { return group_norm(x[0], 2, x[1], x[2]); }, {2, 4, 2}, 4),
      normalization(
          "instance_norm", [](const List& x) { return instance_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5); },
          {2, 2, 3}, 2),
      normalization(
          "batch_norm", [](const List& x) { return batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5); }, {3, 2, 2},
          2)
          .empty({{0, 2, 2}, {2}, {2}}),
      normalization(
          "batch_norm in evaluation",
          [=](const List& x) {
            return batch_norm(x[0], x[1], x[2], mean.to(x[0].device()), variance.to(x[0].device()), false, 0.1, 1e-5);
          },
          {3, 2}, 2),
      of_tensors("rms_norm", [](const List& x) { return rms_norm(x[0], {4}, x[1]); }, {{{3, 4}, -1, 1}, {{4}, 0.5, 1}})
          .empty({{0, 4}, {4}})
          .tolerance(1e-4),
      of_matrix(
          "cosine_similarity", [](const Tensor& x) { return cosine_similarity(x, x * x, 1); }, 0.3, 1),
      of_matrix(
          "pairwise_distance", [](const Tensor& x) { return pairwise_distance(x, x * 3); }, 0.3, 1),
  };
}

}  // namespace tenon::test
