// Names from the SPECs that were typed.
#include <tenon/replay/results/row_names.h>

#include <tenon/core/spec_names.h>

#include <map>
#include <set>
#include <string_view>

namespace tenon::replay {

namespace {

std::vector<std::string> typed(const std::vector<ReplayRow>& rows) {
  std::vector<std::string> specs;
  for (const ReplayRow& row : rows) specs.push_back(row.label.empty() ? row.allocator : row.label);
  return specs;
}

}  // namespace

std::vector<std::string> allocator_names(const std::vector<ReplayRow>& rows) {
  const std::vector<std::string> specs = typed(rows), titles = short_specs(specs);
  std::map<std::string_view, std::set<std::string_view>> sources;  // by allocator: the files, "" for one found by name
  for (std::size_t i = 0; i < rows.size(); ++i)
    sources[rows[i].allocator].insert(names_a_file(specs[i]) ? word_of_spec(specs[i]) : std::string_view());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool needs_file = names_a_file(specs[i]) && sources[rows[i].allocator].size() > 1;
    names.push_back(needs_file ? std::string(word_of_spec(titles[i])) : rows[i].allocator);
  }
  return names;
}

std::vector<std::string> row_titles(const std::vector<ReplayRow>& rows) { return short_specs(typed(rows)); }

}  // namespace tenon::replay
