// Rows of the gradient table: convolutions, pools, and the unfolding of windows.
#include "gradient_case.h"

namespace tenon::test {
namespace {

using List = std::vector<Tensor>;

GradientCase pool(std::string name, std::function<Tensor(const Tensor&)> function) {
  return of_tensors(std::move(name), [function](const List& x) { return function(x[0]); }, {{{1, 2, 4, 4}, -1, 1}})
      .empty({{0, 2, 4, 4}});
}

GradientCase convolution(std::string name, Function function, std::vector<std::int64_t> input,
                         std::vector<std::int64_t> weight, std::int64_t channels_out) {
  std::vector<std::int64_t> nothing = input;
  nothing[0] = 0;
  return of_tensors(std::move(name), std::move(function), {{input, -1, 1}, {weight, -1, 1}, {{channels_out}, -1, 1}})
      .empty({nothing, weight, {channels_out}});
}

}  // namespace

std::vector<GradientCase> window_gradients() {
  return {
      convolution(
          "conv1d", [](const List& x) { return conv1d(x[0], x[1], x[2], 2, 1); }, {1, 2, 5}, {2, 2, 3}, 2),
      convolution(
          "conv2d",
          [](const List& x) {
            return conv2d(x[0], x[1], x[2], {1, 2}, 1, 1);
          },
          {1, 2, 3, 4}, {2, 2, 2, 3}, 2),
      convolution(
          "conv2d of a batch", [](const List& x) { return conv2d(x[0], x[1], x[2]); }, {2, 1, 3, 3}, {2, 1, 2, 2}, 2),
      convolution(
          "conv2d groups", [](const List& x) { return conv2d(x[0], x[1], x[2], 1, IntArrayRef({0}), 2, 2); },
          {1, 2, 4, 4}, {2, 1, 2, 2}, 2),
      convolution(
          "conv3d", [](const List& x) { return conv3d(x[0], x[1], x[2]); }, {1, 1, 2, 3, 3}, {1, 1, 2, 2, 2}, 1),
      convolution(
          "conv_transpose1d", [](const List& x) { return conv_transpose1d(x[0], x[1], x[2], 2); }, {1, 2, 3}, {2, 1, 2},
          1),
      convolution(
          "conv_transpose2d", [](const List& x) { return conv_transpose2d(x[0], x[1], x[2], 2, 1, 1); }, {1, 2, 2, 2},
          {2, 1, 3, 3}, 1),
      convolution(
          "conv_transpose3d", [](const List& x) { return conv_transpose3d(x[0], x[1], x[2]); }, {1, 1, 2, 2, 2},
          {1, 1, 2, 2, 1}, 1),
      pool("max_pool2d", [](const Tensor& x) { return max_pool2d(x, 2, 2); }),
      pool("max_pool2d padded", [](const Tensor& x) { return max_pool2d(x, 3, 2, 1); }),
      pool("avg_pool2d", [](const Tensor& x) { return avg_pool2d(x, 3, 2, 1); }),
      pool("adaptive_avg_pool2d", [](const Tensor& x) { return adaptive_avg_pool2d(x, 3); }),
      pool("adaptive_max_pool2d", [](const Tensor& x) { return std::get<0>(adaptive_max_pool2d(x, 2)); }),
      pool("im2col", [](const Tensor& x) { return im2col(x, 2, 1, 0, 1); }),
      of_tensors("col2im",
                 [](const List& x) {
                   return col2im(x[0], {3, 3}, 2, 1, 0, 1);
                 },
                 {{{1, 4, 4}, -1, 1}})
          .empty({{0, 4, 4}}),
  };
}

}  // namespace tenon::test
