// A line search for the strong Wolfe conditions.
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <functional>

namespace tenon::optim {

/// A function along a line, at one step from its start.
struct LinePoint {
  double step = 0;
  double loss = 0;
  double slope = 0;  ///< the gradient along the direction
  Tensor gradient;   ///< flat
};

struct WolfeOptions {
  double sufficient_decrease = 1e-4;  ///< c1: of what the slope at the start promises
  double curvature = 0.9;             ///< c2: |slope| must fall to this part of the start's
  std::int64_t max_evaluations = 25;  ///< after the first
  double smallest_bracket = 0;        ///< brackets narrower than this end the search
};

struct LineSearchResult {
  LinePoint point;
  std::int64_t evaluations = 0;
};

/// Brackets a step that satisfies the conditions, starting from `first_step`, then narrows the bracket by cubic
/// interpolation (Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6; the safeguards are PyTorch's).
/// Returns the best point met if the evaluations run out.
TENON_API LineSearchResult strong_wolfe(const std::function<LinePoint(double step)>& evaluate, const LinePoint& start,
                                        double first_step, const WolfeOptions& options);

}  // namespace tenon::optim
