// Bracket, then zoom.
#include <tenon/optim/support/line_search.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tenon::optim {

namespace {

/// The minimum, between two bounds, of the cubic through two points with their slopes; the middle where it has none.
double cubic_minimum(const LinePoint& a, const LinePoint& b, double low, double high) {
  const LinePoint& left = a.step <= b.step ? a : b;
  const LinePoint& right = a.step <= b.step ? b : a;
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double minimum =
      right.step - (right.step - left.step) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2));
  return std::min(std::max(minimum, low), high);
}

}  // namespace

LineSearchResult strong_wolfe(const std::function<LinePoint(double step)>& evaluate, const LinePoint& start,
                              double first_step, const WolfeOptions& options) {
  const auto decreases_too_little = [&](const LinePoint& p) {
    return p.loss > start.loss + options.sufficient_decrease * p.step * start.slope;
  };
  const auto is_flat_enough = [&](const LinePoint& p) { return std::abs(p.slope) <= -options.curvature * start.slope; };

  LinePoint previous = start;
  LinePoint current = evaluate(first_step);
  std::int64_t evaluations = 1;
  std::int64_t iteration = 0;
  bool done = false;
  std::array<LinePoint, 2> bracket{start, current};
  for (; iteration < options.max_evaluations; ++iteration) {
    if (decreases_too_little(current) || (iteration > 1 && current.loss >= previous.loss)) {
      bracket = {previous, current};
      break;
    }
    if (is_flat_enough(current)) {
      bracket = {current, current};
      done = true;
      break;
    }
    if (current.slope >= 0) {
      bracket = {previous, current};
      break;
    }
    const double next =
        cubic_minimum(previous, current, current.step + 0.01 * (current.step - previous.step), current.step * 10);
    previous = std::move(current);
    current = evaluate(next);
    ++evaluations;
  }
  if (iteration == options.max_evaluations) bracket = {start, current};

  std::size_t low = bracket[0].loss <= bracket[1].loss ? 0 : 1;
  bool stuck = false;  // the last trial was close to an end of the bracket
  while (!done && iteration < options.max_evaluations) {
    const double left = std::min(bracket[0].step, bracket[1].step);
    const double right = std::max(bracket[0].step, bracket[1].step);
    double step = cubic_minimum(bracket[0], bracket[1], left, right);
    const double margin = 0.1 * (right - left);
    if (std::min(right - step, step - left) < margin) {
      if (stuck || step >= right || step <= left) {
        step = std::abs(step - right) < std::abs(step - left) ? right - margin : left + margin;
        stuck = false;
      } else {
        stuck = true;
      }
    } else {
      stuck = false;
    }
    LinePoint trial = evaluate(step);
    ++evaluations;
    ++iteration;
    const std::size_t high = 1 - low;
    if (decreases_too_little(trial) || trial.loss >= bracket[low].loss) {
      bracket[high] = std::move(trial);
      low = bracket[0].loss <= bracket[1].loss ? 0 : 1;
    } else {
      done = is_flat_enough(trial);
      if (!done && trial.slope * (bracket[high].step - bracket[low].step) >= 0) bracket[high] = bracket[low];
      bracket[low] = std::move(trial);
    }
    if (std::abs(bracket[1].step - bracket[0].step) < options.smallest_bracket) break;
  }
  return {bracket[low], evaluations};
}

}  // namespace tenon::optim
