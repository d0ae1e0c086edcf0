// Exact figures differ or do not; of measured ones an interval decides.
#include <tenon/measure/compare/figure_verdict.h>
#include <tenon/measure/statistics/verdict.h>

#include <tenon/core/units.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon::measure {

namespace {

using Kind = FigureVerdict::Kind;

/// With a sign, and tenths; of what would read 0.0, one digit that counts: "+0.002".
std::string signed_text(double value) {
  return std::abs(value) < 0.05 ? fmt::format("{:+.1g}", value) : fmt::format("{:+.1f}", value);
}

const char* word_of(const FigureInfo& info, bool is_more) {
  if (info.better == Better::kNeither) return "differs";
  return is_more == (info.better == Better::kMore) ? "better" : "worse";
}

std::string exact_verdict(const FigureInfo& info, double first, double other) {
  if (first == other) return "same";
  const char* word = word_of(info, other > first);
  const double difference = other - first;
  if (info.unit == FigureUnit::kShare) return fmt::format("{}: {} points", word, signed_text(100 * difference));
  if (first <= 0) {
    const bool is_bytes = info.unit == FigureUnit::kBytes && difference > 0;
    return is_bytes ? fmt::format("{}: +{}", word, format_bytes(static_cast<std::uint64_t>(difference)))
                    : fmt::format("{}: {:+g}", word, difference);
  }
  const double percent = 100 * difference / first;
  if (info.unit == FigureUnit::kNumber) return fmt::format("{}: {} %", word, signed_text(percent));
  return fmt::format("{} by {} %", word, signed_text(percent).substr(1));
}

/// A change of a figure that is not a time, in points of a share, in percent of anything else.
FigureVerdict changed(const FigureInfo& info, const ResultFigure& then, const ResultFigure& now) {
  const bool is_share = info.unit == FigureUnit::kShare;
  const auto by = is_share ? shift_interval(then.samples, now.samples, kCompareConfidence) : unpaired_ratio(then, now);
  const double nothing = is_share ? 0 : 1;
  const std::string range = fmt::format("{} to {} {}", signed_text(100 * (by->low - nothing)),
                                        signed_text(100 * (by->high - nothing)), is_share ? "points" : "%");
  if (by->low <= nothing && by->high >= nothing)
    return {Kind::kNoEvidence, fmt::format("no evidence of a difference ({})", range), {}};
  return {Kind::kDifferent, fmt::format("{}: {}", word_of(info, by->low > nothing), range), {}};
}

/// What gives one measurement of a figure.
const char* name_of_one(ResultKind kind) {
  return kind == ResultKind::kRun || kind == ResultKind::kSweep ? "run" : "file";
}

const char* advice_for(const FigureInfo& info, ResultKind kind) {
  if (info.is_measured() && kind == ResultKind::kBench)
    return "take both in one `tenon bench OLD NEW`, or six files or more a side, made in turn, as `tenon compare a-* "
           "vs b-*`";
  if (info.is_measured() && kind == ResultKind::kReplay)
    return "take both in one `tenon bench OLD NEW --history TRACE`, or six files or more a side, made in turn, as "
           "`tenon compare a-* vs b-*`";
  return "repeat both in turn, six times or more, and compare them as `tenon compare a-* vs b-*`";
}

FigureVerdict too_few(const FigureInfo& info, ResultKind kind, const ResultFigure& then, const ResultFigure& now) {
  const std::string change = then.value > 0 ? fmt::format(" ({:+.1f} %)", 100 * (now.value / then.value - 1)) : "";
  const auto counted = [](const ResultFigure& figure) { return std::max<std::size_t>(1, figure.samples.size()); };
  const std::string few =
      counted(then) == 1 && counted(now) == 1
          ? fmt::format("one {} each", name_of_one(kind))
          : fmt::format("{} against {} {}s are too few", counted(then), counted(now), name_of_one(kind));
  return {Kind::kTooFew, fmt::format("no verdict: {}{}", few, change),
          fmt::format("{}: {}", few, advice_for(info, kind))};
}

/// Of a figure that another run would give another value.
FigureVerdict estimated_verdict(const FigureInfo& info, ResultKind kind, const ResultFigure& then,
                                const ResultFigure& now) {
  const auto ratio = unpaired_ratio(then, now);
  if (!ratio) return too_few(info, kind, then, now);
  if (!info.is_measured()) return changed(info, then, now);
  return {verdict_on(ratio) == Verdict::kNoEvidence ? Kind::kNoEvidence : Kind::kDifferent, speed_sentence(ratio), {}};
}

/// Why a measured figure says nothing about speed; empty where it does.
std::string why_shared(const ResultCase& found) {
  return found.cells_at_a_time < 2 ? "" : fmt::format("its sweep ran up to {} cells at a time", found.cells_at_a_time);
}

/// Of figures that need the end: two that ran out at the same event have the same one.
bool has_same_end(const ResultCase& first, const ResultCase& other) {
  return first.ran_out == other.ran_out && (first.ran_out.empty() || first.is_oom_event_known);
}

}  // namespace

const ResultFigure* figure_of(const ResultCase& found, const FigureInfo& info) {
  if (!found.failure.empty()) return nullptr;
  const auto figure = found.figures.find(std::string(info.key));
  return figure == found.figures.end() ? nullptr : &figure->second;
}

bool is_estimated(const FigureInfo& info, const ResultFigure& figure) {
  return info.is_measured() ||
         std::ranges::any_of(figure.samples, [&](double sample) { return sample != figure.samples.front(); });
}

/// The shift of their logarithms.
std::optional<Interval> unpaired_ratio(const ResultFigure& before, const ResultFigure& after) {
  const auto logs = [](std::vector<double> values) {
    for (double& value : values) value = std::log(std::max(value, 1e-300));
    return values;
  };
  auto shift = shift_interval(logs(before.samples), logs(after.samples), kCompareConfidence);
  if (shift) *shift = {std::exp(shift->low), std::exp(shift->middle), std::exp(shift->high)};
  return shift;
}

FigureVerdict figure_verdict(const FigureInfo& info, const ResultCase& first, const ResultCase& other) {
  const ResultFigure* const then = figure_of(first, info);
  const ResultFigure* const now = figure_of(other, info);
  if (then == nullptr || now == nullptr) {
    const ResultCase& failed = first.failure.empty() ? other : first;
    if (failed.failure.empty()) return {};
    return {Kind::kFailed, "no verdict: " + failed.mark, failed.failure};
  }
  if (info.needs_completion() && !has_same_end(first, other)) {
    const bool is_first = other.ran_out.empty();
    return {Kind::kNotComparable, "not comparable: " + (is_first ? "the first ran out" : other.ran_out),
            is_first ? "the first ran out: " + first.ran_out : other.ran_out};
  }
  if (info.is_measured()) {
    const std::string why = why_shared(first).empty() ? why_shared(other) : why_shared(first);
    if (!why.empty()) return {Kind::kShared, "no verdict: shared machine", why};
  }
  if (info.counts_parts() && then->value != now->value && (first.is_resumed || other.is_resumed))
    return {Kind::kResumed, "no verdict: a run that was resumed",
            "a run that was resumed took its memory from the device again, which is counted too"};
  if (is_estimated(info, *then) || is_estimated(info, *now)) return estimated_verdict(info, other.kind, *then, *now);
  return {then->value == now->value ? Kind::kSame : Kind::kDifferent, exact_verdict(info, then->value, now->value), {}};
}

}  // namespace tenon::measure
