// Ends of paths, a folder more at a time.
#include <tenon/core/spec_names.h>

#include <algorithm>
#include <map>
#include <set>

namespace tenon {

namespace {

/// The last `parts` of a path; all of it where it has no more.
std::string_view end_of(std::string_view path, int parts) {
  std::size_t from = path.size();
  for (int i = 0; i < parts; ++i) {
    const std::size_t slash = from == 0 ? std::string_view::npos : path.rfind('/', from - 1);
    if (slash == std::string_view::npos) return path;
    from = slash;
  }
  return path.substr(from + 1);
}

}  // namespace

std::string_view word_of_spec(std::string_view spec) { return spec.substr(0, spec.find(':')); }

bool is_plugin_path(std::string_view text) { return text.find('/') != std::string_view::npos || text.ends_with(".so"); }

bool names_a_file(std::string_view spec) { return is_plugin_path(word_of_spec(spec)); }

std::vector<std::string> short_specs(const std::vector<std::string>& specs) {
  std::set<std::string_view> paths;
  for (const std::string& spec : specs)
    if (names_a_file(spec)) paths.insert(word_of_spec(spec));
  std::vector<std::string> names;
  for (const std::string& spec : specs) {
    const std::string_view path = word_of_spec(spec);
    if (!names_a_file(spec)) {
      names.push_back(spec);
      continue;
    }
    std::string_view name;
    for (int parts = 1; name != path; ++parts) {
      name = end_of(path, parts);
      const auto ends_so = [&](std::string_view other) { return end_of(other, parts) == name; };
      if (std::ranges::count_if(paths, ends_so) == 1) break;
    }
    names.push_back(std::string(name) + spec.substr(path.size()));
  }
  return names;
}

std::vector<std::string> allocator_titles(const std::vector<std::string>& names,
                                          const std::vector<std::string>& specs) {
  const std::vector<std::string> short_ones = short_specs(specs);
  std::map<std::string_view, std::set<std::string_view>> files;  // by name; "" for one found by its name
  const auto file_of = [&](std::size_t i) {
    return names_a_file(specs[i]) ? word_of_spec(specs[i]) : std::string_view();
  };
  for (std::size_t i = 0; i < names.size(); ++i) files[names[i]].insert(file_of(i));
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool needs_file = !file_of(i).empty() && files[names[i]].size() > 1;
    titles.emplace_back(needs_file ? word_of_spec(short_ones[i]) : std::string_view(names[i]));
  }
  return titles;
}

}  // namespace tenon
