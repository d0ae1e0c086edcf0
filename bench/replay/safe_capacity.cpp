// The smallest safe capacity of allocators: from it on every larger device runs the history without running out of
// memory, in parts of the most that lived. All figures are exact to one step.
//
//   runs out | runs | runs out | runs                       a device that is larger may run out where a smaller one
//                              ^ safe from here on          does not: so it is looked for from above
//
//   tenon_safe_capacity [-a SPEC]... HISTORY...
#include "../history_arguments.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/replay/advise/capacity_walk.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/runtime/allocator_spec.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace tenon;

/// Of the most that lived: capacities are tried so far apart, from the highest one down.
constexpr double kStep = 0.0025, kHighest = 1.6;
/// Histories that need less are left out: pages and segments decide there.
constexpr std::uint64_t kLeastBytes = 16 * MiB;

replay::ReplayRow replayed(const replay::Trace& trace, const StackConfig& policy,
                           std::optional<std::uint64_t> capacity) {
  replay::ReplayRow row = replay::run_job(trace, policy,
                                          {.capacity_bytes = capacity,
                                           .timed_passes = 0,
                                           .time_each_call = false,
                                           .check_placement = false,
                                           .stop_at_first_oom = true});
  if (!row.failure.empty()) throw Error(row.trace + ": " + row.failure);
  return row;
}

/// In parts of the most that lived; none: the highest one is not safe.
std::optional<double> safe_from(const replay::Trace& trace, const StackConfig& policy) {
  const auto need = static_cast<double>(trace.facts.peak_requested_bytes);
  const bool looks_at_capacity = replay::depends_on_capacity(policy);
  // From `at` on all capacities run. Where the policy does not look at it, a replay says down to which one it goes the
  // same.
  double at = kHighest;
  const auto run_below = [&](double part) {
    const auto capacity = static_cast<std::uint64_t>(std::ceil(part * need));
    const replay::ReplayRow row = replayed(trace, policy, capacity);
    if (row.ooms != 0) return false;
    at = looks_at_capacity ? part : std::min(part, static_cast<double>(row.same_from_bytes) / need);
    return true;
  };
  if (!run_below(kHighest)) return std::nullopt;
  while (at > 1 && run_below(std::max(1.0, at - kStep))) {
  }
  return at;
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace

int main(int argc, char** argv) try {
  const auto [specs, files] =
      bench::read_history_arguments(argc, argv, {"direct", "mortise", "tlsf", "expandable", "stitching", "caching"});
  std::string title = "| history |", rule = "|---|";
  for (const std::string& spec : specs) {
    title += " `" + spec + "` |";
    rule += "---|";
  }
  std::printf("%s\n%s\n", title.c_str(), rule.c_str());
  std::vector<std::vector<double>> found(specs.size());
  std::size_t histories = 0;
  for (const std::string& file : files) {
    for (const replay::Trace& trace : replay::read_traces(file)) {
      if (trace.facts.peak_requested_bytes < kLeastBytes) continue;
      ++histories;
      std::printf("| %s |", bench::history_name(file).c_str());
      for (std::size_t i = 0; i < specs.size(); ++i) {
        const std::optional<double> safe = safe_from(trace, allocator_from_spec(specs[i]));
        if (safe) found[i].push_back(*safe);
        std::printf(safe ? " %.3f |" : " > %.3f |", safe.value_or(kHighest));
        std::fflush(stdout);
      }
      std::printf("\n");
    }
  }
  std::printf("| geometric mean |");
  for (const auto& values : found)
    std::printf(values.size() == histories && histories != 0 ? " %.4f |" : " |",
                values.empty() ? 0 : geometric_mean(values));
  std::printf("\n");
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
