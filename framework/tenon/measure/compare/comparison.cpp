// Matching, and what changed.
#include <tenon/measure/compare/comparison.h>

#include <tenon/core/error.h>
#include <tenon/memory/factory.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tenon::measure {

namespace {

using Field = std::pair<std::string, std::string>;

/// '*' stands for anything; a word without one may stand anywhere.
bool matches(std::string_view text, std::string_view pattern) {
  if (pattern.find('*') == std::string_view::npos) return text.find(pattern) != std::string_view::npos;
  const std::size_t star = pattern.find('*');
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  if (pattern.find('*') == std::string_view::npos) return text.ends_with(pattern);
  for (std::size_t from = 0; from <= text.size(); ++from) {
    if (matches(text.substr(from), pattern)) return true;
  }
  return false;
}

std::vector<ChangedSetting> changed(const Comparison& comparison,
                                    std::map<std::string, std::string> ResultSet::*member) {
  std::set<std::string> keys;
  for (const ResultSet& set : comparison.sets) {
    for (const auto& [key, value] : set.*member) keys.insert(key);
  }
  std::vector<ChangedSetting> found;
  for (const std::string& key : keys) {
    ChangedSetting setting{key, {}};
    for (const ResultSet& set : comparison.sets) {
      const auto value = (set.*member).find(key);
      setting.values.push_back(value == (set.*member).end() ? std::string() : value->second);
    }
    if (!std::ranges::all_of(setting.values, [&](const std::string& value) { return value == setting.values.front(); }))
      found.push_back(std::move(setting));
  }
  return found;
}

}  // namespace

bool passes(const ResultCase& found, const std::vector<std::string>& filters) {
  return filters.empty() || std::ranges::any_of(filters, [&](const std::string& filter) {
           const std::size_t equals = filter.find('=');
           const std::string key = filter.substr(0, equals);
           if (equals != std::string::npos && std::ranges::find(found.fields, key, &Field::first) != found.fields.end())
             return matches(found.field(key), filter.substr(equals + 1));
           return matches(found.name, filter);
         });
}

bool is_ideal(const ResultCase& found) { return found.field(kAllocatorField) == kIdealAllocator; }

namespace {

bool is_ideal(const ResultCase& found, std::string_view key) {
  return key == kAllocatorField && measure::is_ideal(found);
}

/// The one value that all cases of the set have in that field; empty where there are several.
std::optional<std::string> only_value(const ResultSet& set, const std::string& key,
                                      const std::vector<std::string>& filters) {
  std::optional<std::string> only;
  for (const ResultCase& found : set.cases) {
    if (!passes(found, filters) || is_ideal(found, key)) continue;
    if (only && *only != found.field(key)) return std::nullopt;
    only = found.field(key);
  }
  return only;
}

std::vector<ChangedSetting> set_fields(const std::vector<ResultSet>& sets, const std::vector<std::string>& filters) {
  std::vector<std::string> keys;
  for (const ResultSet& set : sets) {
    for (const ResultCase& found : set.cases) {
      for (const auto& [key, value] : found.fields) {
        if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
      }
    }
  }
  std::vector<ChangedSetting> fields;
  for (const std::string& key : keys) {
    ChangedSetting field{key, {}};
    for (const ResultSet& set : sets) {
      if (const auto value = only_value(set, key, filters)) field.values.push_back(*value);
    }
    const bool is_of_sets = field.values.size() == sets.size() && std::ranges::count(field.values, field.values[0]) !=
                                                                      static_cast<std::ptrdiff_t>(sets.size());
    if (is_of_sets) fields.push_back(std::move(field));
  }
  return fields;
}

/// The values of its fields but of those; the allocator as `allocator` where that is not empty.
std::string name_without(const std::vector<ChangedSetting>& fields, const ResultCase& found,
                         const std::string& allocator = {}) {
  if (fields.empty() && allocator.empty()) return found.name;
  std::string name;
  for (const auto& [key, value] : found.fields) {
    const bool is_left_out = std::ranges::find(fields, key, &ChangedSetting::key) != fields.end();
    if (value.empty() || (is_left_out && !is_ideal(found, key))) continue;
    const bool is_allocator = key == found.allocator.field && !allocator.empty();
    name += (name.empty() ? "" : ", ") + (is_allocator ? allocator : value);
  }
  return name.empty() ? "all" : name;
}

bool is_in_all(const ComparedCase& found) { return std::ranges::find(found.of_set, nullptr) == found.of_set.end(); }

/// Of a case that some set lacks: what it is called by its plugin alone; empty where no plugin is known.
std::string name_by_plugin(const Comparison& comparison, const ComparedCase& found) {
  const auto one = std::ranges::find_if(found.of_set, [](const ResultCase* in) { return in != nullptr; });
  if (is_in_all(found) || (*one)->allocator.name.empty() || is_ideal(**one)) return {};
  return name_without(comparison.set_fields, **one, (*one)->allocator.name);
}

/// Cases that are left over, of one plugin, in different sets: no set has two of them.
void join_leftovers(Comparison& comparison) {
  std::vector<ComparedCase>& cases = comparison.cases;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = name_by_plugin(comparison, cases[i]);
    if (name.empty()) continue;
    std::vector<std::size_t> alike;
    std::vector<const ResultCase*> of_set(comparison.sets.size());
    bool is_one_each = true;
    for (std::size_t k = 0; k < cases.size(); ++k) {
      if (name_by_plugin(comparison, cases[k]) != name) continue;
      alike.push_back(k);
      for (std::size_t s = 0; s < of_set.size(); ++s) {
        if (cases[k].of_set[s] == nullptr) continue;
        is_one_each &= of_set[s] == nullptr;
        of_set[s] = cases[k].of_set[s];
      }
    }
    if (!is_one_each || alike.size() < 2) continue;
    const bool is_taken =
        std::ranges::any_of(cases, [&](const ComparedCase& other) { return other.name == name && is_in_all(other); });
    if (!is_taken) cases[i].name = name;
    cases[i].of_set = std::move(of_set);
    for (std::size_t k = alike.size() - 1; k > 0; --k)
      cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(alike[k]));
  }
}

/// What of the allocators differs between the cases that are held against each other, each once.
std::vector<ChangedSetting> changed_allocators(const Comparison& comparison) {
  std::vector<ChangedSetting> changes;
  const auto note = [&](const ComparedCase& found, const char* what, std::string ResultAllocator::*member) {
    const auto one = std::ranges::find_if(found.of_set, [](const ResultCase* in) { return in != nullptr; });
    ChangedSetting change{fmt::format("{} {}", what, (*one)->allocator.name), {}};
    for (const ResultCase* in : found.of_set) change.values.push_back(in == nullptr ? "" : in->allocator.*member);
    const bool is_known = std::ranges::any_of(
        changes, [&](const ChangedSetting& other) { return other.key == change.key && other.values == change.values; });
    if (!is_known && std::set<std::string>(change.values.begin(), change.values.end()).size() > 1)
      changes.push_back(std::move(change));
  };
  for (const ComparedCase& found : comparison.cases) {
    const bool is_of_one = std::ranges::all_of(found.of_set, [&](const ResultCase* in) {
      return in != nullptr && !in->allocator.name.empty() && in->allocator.name == found.of_set[0]->allocator.name;
    });
    if (!is_of_one) continue;
    note(found, "options of", &ResultAllocator::options);
    note(found, "file of", &ResultAllocator::file);
  }
  return changes;
}

}  // namespace

Comparison compare(std::vector<ResultSet> sets, const std::vector<std::string>& filters) {
  Comparison comparison{std::move(sets), {}, {}, {}};
  const ResultSet& first = comparison.sets.front();
  for (std::size_t s = 1; s < comparison.sets.size(); ++s) {
    if (comparison.sets[s].kind == first.kind) continue;
    throw ConfigError(fmt::format("{} is {}, and {} is {}: compare results of one kind", first.path,
                                  kind_name(first.kind), comparison.sets[s].path, kind_name(comparison.sets[s].kind)));
  }
  comparison.set_fields = set_fields(comparison.sets, filters);
  for (std::size_t s = 0; s < comparison.sets.size(); ++s) {
    for (const ResultCase& found : comparison.sets[s].cases) {
      if (!passes(found, filters)) continue;
      const std::string name = name_without(comparison.set_fields, found);
      auto place = std::ranges::find(comparison.cases, name, &ComparedCase::name);
      if (place == comparison.cases.end()) {
        comparison.cases.push_back({name, std::vector<const ResultCase*>(comparison.sets.size())});
        place = std::prev(comparison.cases.end());
      }
      place->of_set[s] = &found;
    }
  }
  if (comparison.cases.empty())
    throw ConfigError(fmt::format("no case passes --filter {}; there is \"{}\", for example",
                                  fmt::join(filters, " --filter "), first.cases.front().name));
  join_leftovers(comparison);
  comparison.allocators = changed_allocators(comparison);
  return comparison;
}

bool is_same_figure(const FigureInfo& info, const ComparedCase& found) {
  const ResultCase* const first = found.of_set[0];
  const ResultFigure* const figure = first == nullptr ? nullptr : figure_of(*first, info);
  if (figure == nullptr) return false;
  return std::ranges::all_of(found.of_set, [&](const ResultCase* one) {
    const ResultFigure* const other = one == nullptr ? nullptr : figure_of(*one, info);
    if (other == nullptr || other->value != figure->value) return false;
    return info.is_measured() || figure_verdict(info, *first, *one).kind == FigureVerdict::Kind::kSame;
  });
}

std::vector<ChangedSetting> changed_settings(const Comparison& comparison) {
  std::vector<ChangedSetting> found = comparison.set_fields;
  found.insert(found.end(), comparison.allocators.begin(), comparison.allocators.end());
  for (ChangedSetting& setting : changed(comparison, &ResultSet::settings)) {
    if (std::ranges::find(found, setting.key, &ChangedSetting::key) == found.end()) found.push_back(std::move(setting));
  }
  // Which plugins are used follows from the settings; here is which of them are other builds.
  for (ChangedSetting& plugin : changed(comparison, &ResultSet::plugins)) {
    std::set<std::string> builds(plugin.values.begin(), plugin.values.end());
    builds.erase("");
    if (builds.size() > 1) found.push_back(std::move(plugin));
  }
  return found;
}
std::vector<ChangedSetting> changed_environment(const Comparison& comparison) {
  return changed(comparison, &ResultSet::environment);
}

}  // namespace tenon::measure
