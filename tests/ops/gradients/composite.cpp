// Rows of the gradient table: operators written with other operators.
#include <tenon/ops/linalg/covariance.h>
#include <tenon/ops/linalg/pair_distances.h>
#include <tenon/ops/nn/ctc.h>
#include <tenon/ops/nn/resample.h>
#include <tenon/ops/nn/vision.h>
#include <tenon/ops/pointwise/special_functions.h>
#include <tenon/ops/shape/scattered_views.h>

#include "gradient_case.h"

namespace tenon::test {
namespace {

using List = std::vector<Tensor>;

void add_interpolations(std::vector<GradientCase>& rows) {
  for (const Resampling mode :
       {Resampling::kNearest, Resampling::kNearestExact, Resampling::kLinear, Resampling::kCubic}) {
    const bool smooth = mode == Resampling::kLinear || mode == Resampling::kCubic;
    for (const std::int64_t size : {2, 4, 7}) {
      for (int variant = 0; variant < (smooth ? 3 : 1); ++variant) {
        const ResampleOptions options{
            .mode = mode, .align_corners = variant == 1, .scale = {}, .antialias = variant == 2};
        rows.push_back(of_tensors("resample mode " + std::to_string(static_cast<int>(mode)) + " to " +
                                      std::to_string(size) + " variant " + std::to_string(variant),
                                  [=](const List& x) { return resample(x[0], 1, size, options); }, {{{2, 4, 2}}})
                           .empty({{0, 4, 2}}));
      }
    }
  }
}

void add_grid_samples(std::vector<GradientCase>& rows) {
  for (std::int64_t mode = 0; mode < 3; ++mode) {
    for (std::int64_t padding = 0; padding < 3; ++padding) {
      for (const bool corners : {false, true}) {
        const std::string name = "grid_sampler mode " + std::to_string(mode) + " padding " + std::to_string(padding) +
                                 (corners ? " aligned" : "");
        if (mode == static_cast<std::int64_t>(GridInterpolation::kNearest)) {
          // The nearest element does not depend smoothly on the point: the grid has no gradient.
          rows.push_back(
              of_tensors(name,
                         [=](const List& x) {
                           const Tensor grid = linspace(-1.3, 1.3, x[0].size(0) * 12, x[0].options());
                           return grid_sampler(x[0], grid.view({x[0].size(0), 3, 2, 2}), mode, padding, corners);
                         },
                         {{{2, 2, 3, 4}}})
                  .empty({{0, 2, 3, 4}}));
          continue;
        }
        // A small step, since the derivative jumps where a point crosses an element's centre or the border.
        rows.push_back(of_tensors(name, [=](const List& x) { return grid_sampler(x[0], x[1], mode, padding, corners); },
                                  {{{2, 2, 3, 4}}, {{2, 3, 2, 2}, -1.3, 1.3}})
                           .empty({{0, 2, 3, 4}, {0, 3, 2, 2}})
                           .step(1e-6)
                           .tolerance(1e-4)
                           .once());
      }
    }
  }
  rows.push_back(of_tensors("grid_sampler 3d", [](const List& x) { return grid_sampler(x[0], x[1], 0, 1, false); },
                            {{{1, 2, 2, 3, 2}}, {{1, 2, 1, 2, 3}, -0.9, 0.9}})
                     .empty({{0, 2, 2, 3, 2}, {0, 2, 1, 2, 3}})
                     .step(1e-6)
                     .tolerance(1e-4)
                     .once());
}

void add_special_functions(std::vector<GradientCase>& rows) {
  rows.push_back(of_matrix("special_erfcx", [](const Tensor& x) { return special_erfcx(x); }));
  rows.push_back(of_matrix("special_log_ndtr", [](const Tensor& x) { return special_log_ndtr(x); }));
  rows.push_back(of_matrix(
      "special_ndtri", [](const Tensor& x) { return special_ndtri(x); }, 0.1, 0.9));
  rows.push_back(of_matrix(
      "mvlgamma", [](const Tensor& x) { return mvlgamma(x, 2); }, 1.5, 4));
  rows.push_back(of_tensors("special_xlog1py", [](const List& x) { return special_xlog1py(x[0], x[1]); },
                            {{{3, 4}}, {{4}, -0.5, 2}})
                     .empty({{0, 4}, {4}}));
  rows.push_back(
      of_tensors("float_power", [](const List& x) { return float_power(x[0], x[1]); }, {{{3, 4}, 0.5, 2}, {{4}}})
          .empty({{0, 4}, {4}}));
}

void add_scattered_views(std::vector<GradientCase>& rows) {
  rows.push_back(of_tensors("slice_scatter", [](const List& x) { return slice_scatter(x[0], x[1], 1, 1, 4, 2); },
                            {{{3, 4}}, {{3, 2}}})
                     .empty({{0, 4}, {0, 2}}));
  rows.push_back(
      of_tensors("select_scatter", [](const List& x) { return select_scatter(x[0], x[1], 1, -1); }, {{{3, 4}}, {{3}}})
          .empty({{0, 4}, {0}}));
  rows.push_back(
      of_tensors("diagonal_scatter", [](const List& x) { return diagonal_scatter(x[0], x[1], 1); }, {{{3, 4}}, {{3}}})
          .empty({{0, 4}, {0}}));
  rows.push_back(of_tensors("block_diag",
                            [](const List& x) {
                              return block_diag({x[0], x[1]});
                            },
                            {{{3, 4}}, {{2}}})
                     .empty({{0, 4}, {0}}));
}

void add_covariances(std::vector<GradientCase>& rows) {
  rows.push_back(of_tensors("cov", [](const List& x) { return cov(x[0]); }, {{{3, 4}}}).empty({{0, 4}}));
  rows.push_back(of_tensors("cov of weights",
                            [](const List& x) {
                              return cov(x[0], 1, tenon::tensor({1, 3, 2, 1}).to(x[0].device()), x[1]);
                            },
                            {{{3, 4}}, {{4}, 0.5, 2}})
                     .empty({{0, 4}, {4}}));
  rows.push_back(of_tensors("corrcoef", [](const List& x) { return corrcoef(x[0]); }, {{{3, 5}}})
                     .empty({{0, 5}})
                     .tolerance(1e-4)
                     .once());
}

}  // namespace

std::vector<GradientCase> composite_gradients() {
  std::vector<GradientCase> rows;
  add_special_functions(rows);
  add_scattered_views(rows);
  add_covariances(rows);
  add_interpolations(rows);
  add_grid_samples(rows);
  rows.push_back(of_tensors("affine_grid",
                            [](const List& x) {
                              return affine_grid_generator(x[0], {x[0].size(0), 1, 3, 2}, false);
                            },
                            {{{2, 2, 3}}})
                     .empty({{0, 2, 3}}));
  rows.push_back(of_tensors("affine_grid 3d",
                            [](const List& x) {
                              return affine_grid_generator(x[0], {x[0].size(0), 1, 2, 3, 2}, true);
                            },
                            {{{1, 3, 4}}})
                     .empty({{0, 3, 4}}));
  rows.push_back(of_tensors("pixel_shuffle", [](const List& x) { return pixel_shuffle(x[0], 2); }, {{{1, 8, 2, 3}}})
                     .empty({{0, 8, 2, 3}}));
  rows.push_back(of_tensors("pixel_unshuffle", [](const List& x) { return pixel_unshuffle(x[0], 2); }, {{{2, 4, 6}}})
                     .empty({{0, 4, 6}}));
  rows.push_back(of_matrix("pdist", [](const Tensor& x) { return pdist(x, 3); }));
  for (std::int64_t reduction = 0; reduction < 3; ++reduction) {
    rows.push_back(of_tensors("ctc_loss of reduction " + std::to_string(reduction),
                              [=](const List& x) {
                                const Tensor targets = tenon::tensor({{1, 2, 0}, {2, 2, 3}, {1, 0, 0}});
                                // PyTorch's gradient takes its input for normalised.
                                return ctc_loss(x[0].log_softmax(2), targets, {6, 5, 6}, {2, 3, 0}, 0, reduction);
                              },
                              {{{6, 3, 4}, -3, -0.5}})
                       .empty({{6, 0, 4}})
                       .refuses_empty("not empty")
                       .once());
  }
  return rows;
}

}  // namespace tenon::test
