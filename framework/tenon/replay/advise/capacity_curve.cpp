// The capacities that are tried for one policy, and the bisection below the first safe one.
#include <tenon/core/units.h>
#include <tenon/replay/advise/capacity_curve.h>
#include <tenon/replay/jobs/process_pool.h>

#include <algorithm>
#include <map>
#include <set>

namespace tenon::replay {

namespace {

constexpr double kStep = 0.01;           // of the peak of live bytes
constexpr std::uint64_t kGranule = 512;  // of the replayed device
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
    step_ = std::max(
        {kGranule, static_cast<std::uint64_t>(static_cast<double>(need_) * kStep), (peak - need_) / kMostSteps});
    const std::uint64_t stride = options_.is_coarse ? 4 * step_ : step_;
    std::set<std::uint64_t> capacities;
    for (std::uint64_t capacity = need_; capacity < peak + step_; capacity += stride)
      capacities.insert(typable_capacity(capacity));
    capacities.insert(typable_capacity(peak));
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
    if (!options_.is_coarse) bisect();
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

  /// Between the largest capacity that failed and the next one that was tried.
  void bisect() {
    auto safe = ooms_.rbegin();
    while (safe != ooms_.rend() && safe->second == 0) ++safe;
    if (safe == ooms_.rend() || safe == ooms_.rbegin()) return;
    std::uint64_t fails = safe->first;
    std::uint64_t runs = std::prev(safe)->first;
    while (curve_.failure.empty() && runs - fails > kGranule) {
      const std::uint64_t middle = align_up(fails + (runs - fails) / 2, kGranule);
      if (middle >= runs) return;
      run({middle});
      (ooms_.at(middle) == 0 ? runs : fails) = middle;
    }
  }

  void run(const std::set<std::uint64_t>& capacities) {
    std::vector<Job> jobs;
    for (const std::uint64_t capacity : capacities) {
      if (ooms_.contains(capacity)) continue;  // rounded up to what can be typed, two may be one
      for (const Trace& trace : traces_) {
        Job job{.trace = &trace, .policy = &policy_};
        job.options.capacity_bytes = capacity;
        job.options.timed_passes = 0;
        job.options.time_each_call = job.options.check_placement = false;
        jobs.push_back(std::move(job));
      }
    }
    const std::vector<ReplayRow> rows = run_jobs(jobs, options_.jobs, {}, options_.is_stopping);
    for (const ReplayRow& row : rows) {
      if (!row.failure.empty()) curve_.failure = row.failure;
      ooms_[*row.capacity_bytes] += row.ooms;
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

}  // namespace tenon::replay
