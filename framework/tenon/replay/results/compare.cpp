// Sentences on what changed.
#include <tenon/core/units.h>
#include <tenon/replay/results/compare.h>
#include <tenon/replay/results/figure_kind.h>
#include <tenon/replay/results/gate.h>
#include <tenon/replay/results/median.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::replay {

namespace {

std::string label_of(const ReplayRow& row) { return row.trace + ", " + row.spec(); }

/// Why figures of the two that need the end are not held against each other; empty where they are. Two that ran out at
/// the same event have the same end.
std::string why_not_comparable(const ReplayRow& row, const ReplayRow& before) {
  const std::string now = ran_out(row), then = ran_out(before);
  if (now == then) return {};
  return now.empty() ? fmt::format("not comparable: the baseline ran out, {}", then) : "not comparable: " + now;
}

/// Figures that repeat exactly: any change is one.
std::string exact_verdict(const ReplayRow& row, const ReplayRow& before, const char* metric) {
  const double now = metric_of(row, metric).value_or(0);
  const double then = metric_of(before, metric).value_or(0);
  const std::string why = needs_completion(metric) ? why_not_comparable(row, before) : "";
  if (!why.empty()) return fmt::format("{} {}", metric, why);
  if (now == then) return fmt::format("{} the same", metric);
  const bool is_bytes = std::string_view(metric).ends_with("_bytes");
  const auto show = [&](double value) {
    return is_bytes ? format_bytes(static_cast<std::size_t>(value)) : fmt::format("{:.0f}", value);
  };
  const std::string change = then == 0 ? "" : fmt::format(" ({:+.2f} %)", 100 * (now / then - 1));
  return fmt::format("{} {}: {} to {}{}", metric, now < then ? "better" : "worse", show(then), show(now), change);
}

std::string timed_verdict(const ReplayRow& row, const ReplayRow& before) {
  if (const std::string why = why_not_comparable(row, before); !why.empty()) return "seconds " + why;
  if (row.pass_seconds.empty() || before.pass_seconds.empty()) return "seconds not measured";
  const double then = bootstrap_median(before.pass_seconds).middle, now = bootstrap_median(row.pass_seconds).middle;
  return fmt::format("seconds {:.3g} to {:.3g}{}, no verdict: {}", then, now,
                     then > 0 ? fmt::format(" ({:+.1f} %)", 100 * (now / then - 1)) : "", kOneFileEach);
}

}  // namespace

void add_passes(ReplayRow& row, const ReplayRow& round) {
  if (!round.failure.empty() && row.failure.empty()) row.failure = round.failure;
  row.pass_seconds.insert(row.pass_seconds.end(), round.pass_seconds.begin(), round.pass_seconds.end());
  if (!row.pass_seconds.empty()) {
    row.seconds = *std::ranges::min_element(row.pass_seconds);
    row.events_per_second = row.seconds > 0 ? static_cast<double>(row.events) / row.seconds : 0;
  }
  if (round.harness_seconds > 0)
    row.harness_seconds =
        row.harness_seconds > 0 ? std::min(row.harness_seconds, round.harness_seconds) : round.harness_seconds;
}

std::vector<std::string> timing_remarks(const std::vector<ReplayRow>& rows) {
  std::vector<std::string> sentences;
  for (const ReplayRow& row : rows) {
    if (row.pass_seconds.size() < 2) continue;
    const Interval interval = bootstrap_median(row.pass_seconds);
    sentences.push_back(fmt::format("{}: {:.3g} s [{:.3g}, {:.3g}], median of {} passes with its 95 % interval",
                                    label_of(row), interval.middle, interval.low, interval.high,
                                    row.pass_seconds.size()));
  }
  return sentences;
}

std::vector<std::string> verdicts(const std::vector<ReplayRow>& rows, const std::vector<ReplayRow>& baseline) {
  std::vector<std::string> sentences;
  for (const ReplayRow& row : rows) {
    if (is_ideal(row) || !row.failure.empty()) continue;
    const ReplayRow* const before = matching_row(baseline, row);
    if (before == nullptr) continue;
    std::string sentence = label_of(row) + " against the baseline: ";
    for (const char* metric : {"peak_reserved_bytes", "device_allocations", "ooms"})
      sentence += exact_verdict(row, *before, metric) + "; ";
    sentences.push_back(sentence + timed_verdict(row, *before));
  }
  return sentences;
}

}  // namespace tenon::replay
