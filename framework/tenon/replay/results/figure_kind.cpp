// Kinds of figures by their keys.
#include <tenon/replay/results/figure_kind.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tenon::replay {

namespace {

bool is_of_one_call(std::string_view metric) {
  return metric.starts_with("allocate_ns.") || metric.starts_with("free_ns.") || metric == "ns_per_pair" ||
         metric == "clock_ns";
}

}  // namespace

bool is_measured(std::string_view metric) {
  constexpr std::array<std::string_view, 4> kTimes = {"seconds", "events_per_second", "harness_seconds", "step_ms"};
  return is_of_one_call(metric) || std::ranges::find(kTimes, metric) != kTimes.end();
}

bool needs_completion(std::string_view metric) {
  constexpr std::array<std::string_view, 10> kOthers = {"ooms",    "first_oom_event", "first_oom_bytes", "events",
                                                        "frees",   "allocations",     "streams",         "parameters",
                                                        "step_ms", "harness_seconds"};
  return !is_of_one_call(metric) && std::ranges::find(kOthers, metric) == kOthers.end();
}

std::string ran_out(const ReplayRow& row) {
  if (row.ooms == 0) return {};
  return row.first_oom_event ? fmt::format("OOM at event {}", *row.first_oom_event) : std::string("OOM");
}

}  // namespace tenon::replay
