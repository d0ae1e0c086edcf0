// What is advised for fixed histories: which settings a search finds, and what is found out where memory ran out.
// Recorded in advice.txt; who changes advice on purpose writes the table anew (support/recorded_table.h), with the
// filter AdviceTable*.
#include "replay/drawn_history.h"
#include "replay/support.h"
#include "support/recorded_table.h"

#include <tenon/replay/advise/diagnosis.h>
#include <tenon/replay/advise/tune.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tenon::replay {
namespace {

void expect_advised(const std::string& what, std::string outcome) {
  static test::RecordedTable table("tests/replay/rules/advice.txt");
  std::ranges::replace(outcome, '\n', '|');
  table.expect(what, outcome);
}

TEST(AdviceTable, OfWhatASearchFindsIsAsItWas) {
  load_all_plugins();
  const std::vector<Trace> traces{drawn_history(52, 60, true)};
  TuneOptions options{.budget_seconds = 60, .elapsed_seconds = [] { return 0.0; }, .jobs = 1};
  options.capacity_bytes = traces[0].facts.peak_requested_bytes * 9 / 8;
  const TuneResult result = tune(traces, options);
  expect_advised("search", fmt::format("{} of {}{}, peak {}, \"{}\", {}", result.evaluated, result.space_size,
                                       result.is_exhaustive ? ", all" : "", result.peak_requested_bytes,
                                       result.recommended_conf, hash_of(result.recommended_toml)));
  for (std::size_t i = 0; i < result.finalists.size(); ++i) {
    const Candidate& one = result.finalists[i];
    std::string curve;
    for (const CapacityPoint& point : one.sensitivity) curve += fmt::format("{}:{} ", point.capacity_bytes, point.ooms);
    expect_advised(
        fmt::format("search, finalist {}", i),
        fmt::format("\"{}\" {} {:.4f} {} calls, safe from {}{}{}, ooms {}, peak there {}, first {}, {}{}{}{} {}",
                    one.label, one.peak_reserved_bytes, one.relative_peak, one.device_calls,
                    one.safe_from_bytes.value_or(0), one.is_smallest ? ", the smallest" : "",
                    one.is_sampled ? ", sampled" : "", one.ooms_at_capacity.value_or(99), one.peak_at_capacity,
                    one.first_oom_event.value_or(0), one.is_baseline ? "baseline " : "", one.is_pareto ? "pareto " : "",
                    one.is_recommended ? "recommended " : "", one.failure, hash_of(curve)));
  }
}

TEST(AdviceTable, OfWhatIsFoundOutWhereMemoryRanOutIsAsItWas) {
  load_all_plugins();
  for (const std::uint64_t seed : {61, 62, 63}) {
    Trace trace = drawn_history(seed, 150, false);
    trace.header.erase("allocator");  // as one of PyTorch's
    for (const int percent : {50, 106, 400}) {
      const std::uint64_t capacity = trace.facts.peak_requested_bytes * static_cast<std::uint64_t>(percent) / 100;
      const Diagnosis found =
          diagnose(trace, {.capacity_bytes = capacity, .pytorch_conf = percent == 106 ? "max_split_size_mb:64" : ""});
      std::string text = fmt::format("{}{}{}{}, hole {}", found.is_hopeless() ? "hopeless " : "",
                                     found.is_known ? "known " : "", found.is_pytorch ? "pytorch " : "",
                                     found.failed_request ? found.failed_request->event : 0, found.hole_bytes);
      for (const auto& [site, holder] : found.holders)
        text += fmt::format("; {} {} in {}", site, holder.bytes, holder.blocks);
      for (const std::uint64_t bytes : found.purposes) text += fmt::format(" {}", bytes);
      for (const FitAttempt& other : found.report.others)
        text += fmt::format("; {} {} {} {}{}", found.how_to_set(other), other.ooms, other.peak_reserved_bytes,
                            other.device_calls, other.is_slow ? " slow" : "");
      for (const std::string& complaint : found.complaints()) text += "; " + complaint;
      text += fmt::format("; {} {}", found.report.current.ooms, found.report.current.peak_reserved_bytes);
      expect_advised(fmt::format("{} on {} percent", seed, percent), hash_of(text) + " " + one_line(text));
    }
  }
}

}  // namespace
}  // namespace tenon::replay
