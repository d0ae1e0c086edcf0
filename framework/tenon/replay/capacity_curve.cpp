// The stretch of capacities that is tried for one policy.
#include <tenon/core/units.h>
#include <tenon/replay/capacity_curve.h>
#include <tenon/replay/cells.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace tenon::replay {

namespace {

constexpr double kStep = 0.01;  // of the peak of live bytes
constexpr std::uint64_t kMostSteps = 300;
constexpr std::uint64_t kFewUnits = 128;  // a unit is used from here on: rounding up adds less than 1 %
constexpr int kStretches = 4;             // beyond the unlimited peak, each of kStretchPoints
constexpr int kStretchPoints = 8;

class Curve {
 public:
  Curve(const std::vector<Trace>& traces, const StackConfig& policy, const CapacityCurveOptions& options)
      : traces_(traces), policy_(policy), options_(options) {}

  CapacityCurve measure() {
    for (const Trace& trace : traces_) need_ = std::max(need_, trace.facts.peak_requested_bytes);
    const std::uint64_t peak = std::max(need_, options_.peak_reserved_bytes);
    // A history of a few hundred bytes takes a segment of 2 MiB: the range bounds the number of steps.
    step_ = std::max({std::uint64_t{512}, static_cast<std::uint64_t>(static_cast<double>(need_) * kStep),
                      (peak - need_) / kMostSteps});
    const std::uint64_t stride = options_.is_coarse ? 4 * step_ : step_;
    std::set<std::uint64_t> capacities;
    for (std::uint64_t capacity = need_; capacity < peak + step_; capacity += stride)
      capacities.insert(typable_capacity(capacity));
    capacities.insert(typable_capacity(peak + step_));
    if (options_.target_bytes) capacities.insert(*options_.target_bytes);
    run(capacities);
    // A policy that leaves a share of the device alone, or asks for whole granules, needs more than its peak.
    std::uint64_t beyond = step_;
    for (int i = 0; i < kStretches && curve_.failure.empty() && fails_at_the_top(); ++i) {
      capacities.clear();
      for (int point = 0; point < kStretchPoints; ++point, beyond *= 2)
        capacities.insert(typable_capacity(peak + step_ + beyond));
      run(capacities);
    }
    for (const auto& [capacity, ooms] : ooms_) curve_.points.push_back({capacity, ooms});
    for (auto point = curve_.points.rbegin(); point != curve_.points.rend() && point->ooms == 0; ++point)
      curve_.safe_from_bytes = point->capacity_bytes;
    return std::move(curve_);
  }

 private:
  /// The target does not count: it may lie far beyond, with nothing tried in between.
  bool fails_at_the_top() const {
    auto top = ooms_.rbegin();
    if (top->first == options_.target_bytes && std::next(top) != ooms_.rend()) ++top;
    return top->second != 0;
  }

  void run(const std::set<std::uint64_t>& capacities) {
    std::vector<Cell> cells;
    for (const std::uint64_t capacity : capacities) {
      for (const Trace& trace : traces_) {
        Cell cell{.trace = &trace, .policy = &policy_};
        cell.options.capacity_bytes = capacity;
        cell.options.timed_passes = 0;
        cell.options.time_each_call = cell.options.check_placement = false;
        cells.push_back(std::move(cell));
      }
    }
    const std::vector<ReplayRow> rows = run_cells(cells, options_.jobs);
    for (const ReplayRow& row : rows) {
      if (!row.failure.empty()) curve_.failure = row.failure;
      ooms_[*row.capacity_bytes] += row.ooms;
      if (row.capacity_bytes != options_.target_bytes) continue;
      curve_.ooms_at_target = curve_.ooms_at_target.value_or(0) + row.ooms;
      curve_.peak_at_target = std::max(curve_.peak_at_target, row.peak_reserved_bytes);
    }
  }

  const std::vector<Trace>& traces_;
  const StackConfig& policy_;
  const CapacityCurveOptions& options_;
  CapacityCurve curve_;
  std::map<std::uint64_t, std::uint64_t> ooms_;  // by capacity
  std::uint64_t need_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace

CapacityCurve capacity_curve(const std::vector<Trace>& traces, const StackConfig& policy,
                             const CapacityCurveOptions& options) {
  return Curve(traces, policy, options).measure();
}

std::uint64_t typable_capacity(std::uint64_t bytes) {
  const std::uint64_t unit = bytes >= kFewUnits * MiB ? MiB : bytes >= kFewUnits * KiB ? KiB : 1;
  return align_up(bytes, unit);
}

std::string format_capacity(std::uint64_t bytes) {
  if (bytes >= kFewUnits * MiB && bytes % MiB == 0) return fmt::format("{}MiB", bytes / MiB);
  if (bytes >= kFewUnits * KiB && bytes % KiB == 0) return fmt::format("{}KiB", bytes / KiB);
  return fmt::format("{}B", bytes);
}

}  // namespace tenon::replay
