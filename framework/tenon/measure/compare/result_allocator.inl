// Allocators as results name them: by SPEC, by plugin, by file. A part of result_set.cpp.
#pragma once

#include "result_json.inl"

#include <tenon/core/spec_names.h>
#include <tenon/measure/compare/result_set.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::measure {

namespace {

/// The key of a sweep's rows that is a SPEC.
inline constexpr char kSweptAllocator[] = "allocator.name";

/// The SPEC of a row and the name of its plugin.
struct RowAllocator {
  std::string spec, name;
  std::string number;  ///< "#2" of the second that a bench was given of one SPEC

  std::string options() const;  ///< "chunk=1MiB"
  std::string file() const;     ///< that the SPEC names; empty where it is a name
};

/// Without a SPEC where a sweep is not over allocators.
RowAllocator allocator_of(ResultKind kind, const Json& document, const Json& row);

/// What each row's allocator is called without its options: its plugin's name; of several builds of one plugin each by
/// the end of its path.
std::vector<std::string> titles_of(const std::vector<RowAllocator>& allocators);

/// The plugins of a replay or a bench, of which builds_of() makes texts.
Json plugins_of(ResultKind kind, const Json& document);

/// "plugin mine": "sha256:" and the first digits, of each build of it.
std::map<std::string, std::string> builds_of(const Json& plugins);

/// Empty where it is not a list.
const Json& list(const Json& parent, const std::string& key) {
  static const Json kEmpty = Json::array();
  const Json& found = member(parent, key);
  return found.is_array() ? found : kEmpty;
}

/// "buddy" of "old/buddy.so", where no result says what the plugin is called.
std::string name_of_file(std::string_view path) { return std::filesystem::path(path).stem().string(); }

/// The name of the plugin in that file, by the list of those that were loaded.
std::string plugin_in(const Json& environment, std::string_view path) {
  for (const Json& plugin : list(environment, "plugins"))
    if (text_of(member(plugin, "path")) == path) return text_of(member(plugin, "name"));
  return name_of_file(path);
}

RowAllocator allocator_of_replay(const Json& row) {
  RowAllocator found{text_of(member(row, "spec")), text_of(member(row, kAllocatorField)), {}};
  if (found.spec.empty()) found.spec = found.name;
  return found;
}

RowAllocator allocator_of_bench(const Json& document, const Json& row) {
  const std::string shown = text_of(member(row, kAllocatorField));
  RowAllocator found{shown, std::string(word_of_spec(shown)), {}};
  if (names_a_file(shown)) found.name = name_of_file(found.name);
  for (const Json& one : list(document, "allocators")) {
    if (text_of(member(one, "name")) != shown) continue;
    found.spec = text_of(member(one, "spec"));
    if (shown.starts_with(found.spec)) found.number = shown.substr(found.spec.size());
    if (const std::string name = text_of(member(member(one, "plugin"), "name")); !name.empty()) found.name = name;
  }
  return found;
}

RowAllocator allocator_of_sweep(const Json& document, const Json& row) {
  const std::string spec = text_of(member(row, kSweptAllocator));
  const std::string word(word_of_spec(spec));
  return {spec, is_plugin_path(word) ? plugin_in(member(document, "environment"), word) : word, {}};
}

std::string RowAllocator::options() const {
  const std::string_view word = word_of_spec(spec);
  return word.size() == spec.size() ? std::string() : spec.substr(word.size() + 1);
}

std::string RowAllocator::file() const { return names_a_file(spec) ? std::string(word_of_spec(spec)) : std::string(); }

RowAllocator allocator_of(ResultKind kind, const Json& document, const Json& row) {
  switch (kind) {
    case ResultKind::kReplay:
      return allocator_of_replay(row);
    case ResultKind::kBench:
      return allocator_of_bench(document, row);
    case ResultKind::kSweep:
    case ResultKind::kRun:
      break;
  }
  return allocator_of_sweep(document, row);
}

std::vector<std::string> titles_of(const std::vector<RowAllocator>& allocators) {
  std::vector<std::string> names, specs;
  for (const RowAllocator& one : allocators) {
    names.push_back(one.name);
    specs.push_back(one.spec);
  }
  return allocator_titles(names, specs);
}

Json plugins_of(ResultKind kind, const Json& document) {
  if (kind == ResultKind::kReplay) return list(member(document, "environment"), "plugins");
  Json plugins = Json::array();
  for (const Json& one : list(document, "allocators")) {
    if (member(one, "plugin").is_object()) plugins.push_back(member(one, "plugin"));
  }
  return plugins;
}

std::map<std::string, std::string> builds_of(const Json& plugins) {
  constexpr std::size_t kShownDigits = 12;
  std::map<std::string, std::set<std::string>> builds;
  for (const Json& plugin : plugins.is_array() ? plugins : Json::array())
    builds[text_of(member(plugin, "name"))].insert(text_of(member(plugin, "sha256")).substr(0, kShownDigits));
  std::map<std::string, std::string> texts;
  for (const auto& [name, digits] : builds)
    texts["plugin " + name] = fmt::format("sha256:{}", fmt::join(digits, ", sha256:"));
  return texts;
}

}  // namespace

}  // namespace tenon::measure
