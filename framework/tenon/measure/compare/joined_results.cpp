// Cases of one name over several results.
#include <tenon/measure/compare/joined_results.h>
#include <tenon/measure/statistics/median_interval.h>

#include <tenon/core/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace tenon::measure {

namespace {

using Texts = std::map<std::string, std::string>;

/// Of each key its value, or all of them: "1, 2, 3".
Texts joined_texts(const std::vector<ResultSet>& results, Texts ResultSet::*member) {
  std::map<std::string, std::vector<std::string>> values;
  for (const ResultSet& result : results) {
    for (const auto& [key, value] : result.*member) {
      if (std::ranges::find(values[key], value) == values[key].end()) values[key].push_back(value);
    }
  }
  Texts texts;
  for (const auto& [key, all] : values) texts[key] = fmt::format("{}", fmt::join(all, ", "));
  return texts;
}

void note_failure(ResultCase& found, const std::string& path, const std::string& mark, const std::string& why) {
  if (!found.failure.empty()) return;
  found.mark = mark;
  found.failure = path + ": " + why;
}

/// What became of it in the other results, added to what it is in the first.
void add_end(ResultCase& found, const ResultCase& other, const std::string& path) {
  if (!other.failure.empty()) note_failure(found, path, other.mark, other.failure);
  found.cells_at_a_time = std::max(found.cells_at_a_time, other.cells_at_a_time);
  found.is_resumed |= other.is_resumed;
  if (found.losses_hash != other.losses_hash) found.losses_hash.clear();
  if (found.ran_out == other.ran_out) return;
  found.ran_out = "OOM in some of its results";
  found.is_oom_event_known = false;
}

const ResultCase* case_of(const ResultSet& result, const std::string& name) {
  const auto found = std::ranges::find(result.cases, name, &ResultCase::name);
  return found == result.cases.end() ? nullptr : &*found;
}

ResultCase joined_case(const std::vector<ResultSet>& results, const ResultCase& in_one) {
  ResultCase found = in_one;
  std::map<std::string, std::vector<double>> samples;
  for (const ResultSet& result : results) {
    const ResultCase* const other = case_of(result, found.name);
    if (other == nullptr) {
      note_failure(found, result.path, "missing", "has no such case");
      continue;
    }
    add_end(found, *other, result.path);
    for (const auto& [key, figure] : other->figures) samples[key].push_back(figure.value);
  }
  found.figures.clear();
  for (auto& [key, values] : samples) {
    const double middle = median(values);
    found.figures[key] = {middle, std::move(values)};
  }
  return found;
}

}  // namespace

ResultSet joined(std::vector<ResultSet> results) {
  if (results.size() == 1) return std::move(results.front());
  for (const ResultSet& other : results) {
    if (other.kind == results.front().kind) continue;
    throw ConfigError(fmt::format("{} is {}, and {} is {}: compare results of one kind", results.front().path,
                                  kind_name(results.front().kind), other.path, kind_name(other.kind)));
  }
  ResultSet side{.path = fmt::format("{} and {} more", results.front().path, results.size() - 1),
                 .results = {},
                 .kind = results.front().kind,
                 .cases = {},
                 .settings = joined_texts(results, &ResultSet::settings),
                 .plugins = joined_texts(results, &ResultSet::plugins),
                 .environment = joined_texts(results, &ResultSet::environment)};
  const auto noisy = std::ranges::count_if(results, [](const ResultSet& result) { return !result.noise.empty(); });
  if (noisy != 0) side.noise.push_back(fmt::format("others were busy in {} of {} results", noisy, results.size()));
  for (const ResultSet& result : results) {
    side.results.push_back(result.path);
    for (const ResultCase& found : result.cases) {
      if (case_of(side, found.name) == nullptr) side.cases.push_back(joined_case(results, found));
    }
  }
  return side;
}

}  // namespace tenon::measure
