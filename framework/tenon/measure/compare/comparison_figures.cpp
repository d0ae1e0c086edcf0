// What gates of a comparison are judged on. Declared in comparison.h.
#include <tenon/measure/compare/comparison.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::measure {

namespace {

/// Of one case alone, against a value.
std::string why_without_figure(const ResultCase& found, const FigureInfo& info) {
  if (!found.failure.empty()) return found.failure;
  return info.needs_completion() ? found.ran_out : "";
}

}  // namespace

GateNames ComparisonFigures::names(const Comparison& comparison) {
  GateNames names;
  for (const ResultSet& set : comparison.sets) names.subjects.push_back(set.path);
  for (const FigureInfo& info : known_figures()) {
    const bool is_there = std::ranges::any_of(comparison.cases, [&](const ComparedCase& found) {
      return std::ranges::any_of(found.of_set, [&](const ResultCase* one) {
        return one != nullptr && one->figures.contains(std::string(info.key));
      });
    });
    if (is_there) names.metrics.emplace_back(info.key);
  }
  return names;
}

std::string ComparisonFigures::why_unjudged(const GateQuestion& question) const {
  const ComparedCase& found = comparison_.cases[question.which];
  const ResultCase* const mine = found.of_set[question.subject];
  const FigureInfo& info = *find_figure(question.metric);
  if (!question.against || *question.against == question.subject)
    return mine == nullptr ? std::string() : why_without_figure(*mine, info);
  const ResultCase* const its = found.of_set[*question.against];
  const std::string& its_path = comparison_.sets[*question.against].path;
  if (mine == nullptr || its == nullptr) {
    const ResultCase* const one = mine == nullptr ? its : mine;
    if (one == nullptr || is_ideal(*one)) return {};  // the rows of allocators say that a history is gone
    return fmt::format("it is not in {}", mine == nullptr ? subject_name(question.subject) : its_path);
  }
  if (!mine->failure.empty()) return mine->failure;
  if (!its->failure.empty()) return fmt::format("{}: {}", its_path, its->failure);
  const FigureInfo& its_info = *find_figure(question.against_metric);
  const bool is_there = figure_of(*mine, info) != nullptr, was_there = figure_of(*its, its_info) != nullptr;
  if (is_there != was_there)
    return fmt::format("{} has no {}", is_there ? its_path : subject_name(question.subject),
                       is_there ? question.against_metric : question.metric);
  const std::string why = figure_verdict(info, *its, *mine).why;
  return why.empty() ? figure_verdict(its_info, *its, *mine).why : why;
}

std::optional<Interval> ComparisonFigures::figure(std::size_t which, std::size_t subject,
                                                  const std::string& metric) const {
  const ResultCase* const found = comparison_.cases[which].of_set[subject];
  const FigureInfo* const info = find_figure(metric);
  const ResultFigure* const figure = found == nullptr || info == nullptr ? nullptr : figure_of(*found, *info);
  if (figure == nullptr) return std::nullopt;
  // Against a value, of one result too: nothing is said of another time.
  const std::vector<double>& seen = figure->samples.empty() ? figure->rounds : figure->samples;
  if (seen.size() >= samples_for(kCompareConfidence)) return median_interval(seen, kCompareConfidence);
  if (seen.empty()) return Interval{figure->value, figure->value, figure->value};
  const auto [least, most] = std::ranges::minmax(seen);  // too few for an interval: all that was seen
  return Interval{std::min(least, figure->value), figure->value, std::max(most, figure->value)};
}

std::optional<Interval> ComparisonFigures::ratio(std::size_t which, const GateOperand& left, std::size_t left_subject,
                                                 const GateOperand& right, std::size_t right_subject) const {
  const ResultCase* const mine = comparison_.cases[which].of_set[left_subject];
  const ResultCase* const its = comparison_.cases[which].of_set[right_subject];
  const FigureInfo* const info = find_figure(left.metric);
  if (left.metric == right.metric && mine != nullptr && its != nullptr && info != nullptr) {
    const ResultFigure *const now = figure_of(*mine, *info), *const then = figure_of(*its, *info);
    const bool is_by_samples =
        now != nullptr && then != nullptr && (is_estimated(*info, *now) || is_estimated(*info, *then));
    if (is_by_samples) return unpaired_ratio(*then, *now);  // as the table's verdict
  }
  return GateFigures::ratio(which, left, left_subject, right, right_subject);
}

}  // namespace tenon::measure
