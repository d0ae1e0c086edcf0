// Sweeps: which settings vary, one by one as a product of their values, or together as named rows.
// Declared in config.h.
#include <tenon/core/error.h>
#include <tenon/core/text/trimmed.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/config/config_sources.h>
#include <tenon/runtime/config/config_state.h>
#include <tenon/runtime/config/toml_reader.h>
#include <tenon/runtime/plugins/plugin_search.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

namespace tenon {

namespace {

constexpr std::string_view kSweep = "sweep.";
constexpr std::string_view kRows = "sweep.rows";

/// The values of KEY=a,b or KEY=[a, b] as typed, with quotes or without; empty where it is something else. Those
/// of an allocator are SPECs, which may have commas of their own.
std::optional<ConfigList> words_of(const std::string& key, const ConfigValue& value) {
  std::string typed = value.typed;
  if (!value.bare || typed.find(',') == std::string::npos) return std::nullopt;
  const bool is_list = typed.starts_with('[') && typed.ends_with(']');
  if (is_list) typed = typed.substr(1, typed.size() - 2);
  std::vector<std::string> words;
  if (typed.find_first_of("\"'") == std::string::npos) {
    words = split_specs(typed);
    if (words.size() == 1 && !is_list) return std::nullopt;  // one SPEC of several options
  } else if (const auto list = read_toml_value(fmt::format("[{}]", typed)); !is_list && list) {
    for (const ConfigValue& item : std::get<ConfigList>(list->value)) words.push_back(item.text);
  } else {
    return std::nullopt;
  }
  ConfigList values;
  for (const std::string& word : words) {
    values.push_back(setting_from_argument(fmt::format("{}={}", key, trimmed(word))).value);
    values.back().position = value.position;
  }
  return values;
}

/// The values of KEY=[a, b] or KEY=a,b on the command line, where KEY itself takes one value.
std::optional<ConfigList> swept_values(const Config::State& state, const Setting& setting) {
  const ConfigValue& value = setting.winner().value;
  if (value.position.origin != Origin::kCommandLine) return std::nullopt;
  const KeyParts parts = split_key(setting.key);
  const SectionSpec* section = state.book.find_fixed(parts.section);
  const bool is_list = section != nullptr && contains(section->lists, parts.option);
  if (const auto* list = std::get_if<ConfigList>(&value.value)) {
    const bool list_of_lists = !list->empty() && std::holds_alternative<ConfigList>(list->front().value);
    return is_list && !list_of_lists ? std::nullopt : std::optional(*list);
  }
  return is_list ? std::nullopt : words_of(setting.key, value);
}

bool has_axis(const std::vector<Axis>& axes, std::string_view key) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.key == key; });
}

/// A setting from the environment or the command line outranks the file's sweep over the same key.
bool is_pinned(const Config::State& state, std::string_view key, const Position& position) {
  const Setting* setting = state.find(key);
  return setting != nullptr && setting->winner().value.position.origin > position.origin;
}

/// Adds one line of [sweep.rows]: "NAME.KEY" with a value, or "NAME" for a row that changes nothing.
void take_row_setting(Config::State& state, const ConfigEntry& entry) {
  const std::string rest = entry.key.size() > kRows.size() ? entry.key.substr(kRows.size() + 1) : std::string();
  const std::size_t dot = rest.find('.');
  if (rest.empty() || (dot == std::string::npos && !entry.is_empty_table)) {
    throw config_error(
        entry.key_position,
        "a row of a sweep is a table of settings: \"name of the row\" = { \"train.checkpoint\" = true }");
  }
  const std::string name = rest.substr(0, dot);
  auto row = std::find_if(state.rows.begin(), state.rows.end(), [&](const SweepRow& r) { return r.name == name; });
  if (row == state.rows.end()) row = state.rows.insert(row, {name, {}});
  if (entry.is_empty_table) return;
  row->settings.push_back(entry);
  row->settings.back().key = rest.substr(dot + 1);
}

/// The setting as a word of the command line, where relative paths mean another folder.
std::string as_override(const Config::State& state, const std::string& key, const ConfigValue& value) {
  std::string text = value.text;
  if (const auto* word = std::get_if<std::string>(&value.value); key == "allocator.name" && word != nullptr) {
    const std::size_t colon = std::min(word->find(':'), word->size());
    if (is_plugin_path(word->substr(0, colon))) {
      const auto path = std::filesystem::absolute(state.base_of(value.position) / word->substr(0, colon));
      text = fmt::format("{}{}", path.lexically_normal().string(), word->substr(colon));
    }
  }
  return key + "=" + text;
}

/// "direct" for people, where the override says allocator.name="direct".
std::string shown_value(const std::string& override_text) {
  std::string value = override_text.substr(override_text.find('=') + 1);
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  return value;
}

std::string nothing_to_sweep(const Config::State& state) {
  if (state.remarks.empty())
    return "--sweep has nothing to sweep over: add a section [sweep] to the file, or write KEY=a,b or KEY=[a, b]";
  return fmt::format(
      "--sweep has nothing to sweep over: {}; leave that out to sweep over what the file lists, or write several "
      "values, "
      "as in KEY=a,b",
      fmt::join(state.remarks, "; "));
}

/// Cells that differ in nothing are meant, to see the noise of times, or a slip of the keyboard.
void remark_repeated_values(Config::State& state, const Axis& axis) {
  std::map<std::string, int> times;
  for (const ConfigValue& value : axis.values) ++times[value.text];
  for (const auto& [text, count] : times) {
    if (count > 1) state.remarks.push_back(fmt::format("the sweep over {} has {} {} times", axis.key, text, count));
  }
}

void keep_displaced(Config::State& state, std::string_view key, const ConfigList& values) {
  if (key != "allocator.name") return;
  state.displaced_allocators.insert(state.displaced_allocators.end(), values.begin(), values.end());
}

}  // namespace

void take_sweep(Config::State& state, const ConfigRequest& request) {
  std::vector<Axis> from_arguments;
  if (request.sweep_overrides) {
    std::erase_if(state.settings, [&](const Setting& setting) {
      auto values = swept_values(state, setting);
      if (!values) return false;
      for (std::size_t i = 0; i + 1 < setting.entries.size(); ++i)
        keep_displaced(state, setting.key, {setting.entries[i].value});
      from_arguments.push_back({setting.key, std::move(*values), setting.winner().key_position});
      return true;
    });
  }
  for (const Setting& setting : state.settings) {
    if (!setting.key.starts_with(kSweep)) continue;
    if (setting.key == kRows || setting.key.starts_with(std::string(kRows) + ".")) {
      take_row_setting(state, setting.winner());
      continue;
    }
    const std::string key = setting.key.substr(kSweep.size());
    const ConfigValue& value = setting.winner().value;
    const std::optional<ConfigList> words = words_of(key, value);
    const auto* values = words ? &*words : std::get_if<ConfigList>(&value.value);
    if (values == nullptr) {
      throw config_error(value.position,
                         fmt::format("a sweep takes a list of values: \"{}\" = [{}, …]", key, value.text));
    }
    if (is_pinned(state, key, value.position)) {
      const ConfigValue& stronger = state.find(key)->winner().value;
      state.remarks.push_back(fmt::format("{} is {} in every cell: {} overrides the sweep over it", key, stronger.text,
                                          stronger.position.str()));
      keep_displaced(state, key, *values);
    } else if (!has_axis(from_arguments, key)) {
      state.axes.push_back({key, *values, setting.winner().key_position});
    } else {
      keep_displaced(state, key, *values);
    }
  }
  state.axes.insert(state.axes.end(), from_arguments.begin(), from_arguments.end());
  for (const Axis& axis : state.axes) {
    if (axis.values.empty())
      throw config_error(axis.position, fmt::format("the sweep over {} has no values", axis.key));
    remark_repeated_values(state, axis);
  }
  for (SweepRow& row : state.rows) {
    std::erase_if(row.settings, [&](const ConfigEntry& entry) {
      const bool is_displaced =
          is_pinned(state, entry.key, entry.value.position) || has_axis(from_arguments, entry.key);
      if (is_displaced) keep_displaced(state, entry.key, {entry.value});
      return is_displaced;
    });
    for (const ConfigEntry& entry : row.settings) {
      if (!has_axis(state.axes, entry.key)) continue;
      throw config_error(entry.key_position, fmt::format("the row '{}' sets {}, which the sweep varies for every row",
                                                         row.name, entry.key));
    }
  }
  std::erase_if(state.settings, [](const Setting& setting) {
    return setting.key.starts_with(kSweep) || (setting.key == "sweep" && setting.winner().is_empty_table);
  });
  if (request.sweep_overrides && state.axes.empty() && state.rows.empty()) {
    throw ConfigError(nothing_to_sweep(state));
  }
}

std::vector<std::string> Config::remarks() const { return state_->remarks; }

std::vector<std::string> Config::sweep_keys() const {
  std::vector<std::string> keys;
  if (!state_->rows.empty()) keys.emplace_back("row");
  for (const Axis& axis : state_->axes) keys.push_back(axis.key);
  return keys;
}

std::vector<SweepPoint> Config::sweep_cells() const {
  const State& state = *state_;
  if (state.axes.empty() && state.rows.empty()) return {};
  std::vector<SweepPoint> cells;
  for (const SweepRow& row : state.rows) {
    cells.push_back({{row.name}, {}});
    for (const ConfigEntry& entry : row.settings) {
      cells.back().overrides.push_back(as_override(state, entry.key, entry.value));
    }
  }
  if (cells.empty()) cells.emplace_back();
  for (const Axis& axis : state.axes) {
    std::vector<SweepPoint> longer;
    for (const SweepPoint& cell : cells) {
      for (const ConfigValue& value : axis.values) {
        longer.push_back(cell);
        longer.back().overrides.push_back(as_override(state, axis.key, value));
        longer.back().values.push_back(shown_value(longer.back().overrides.back()));
      }
    }
    cells = std::move(longer);
  }
  return cells;
}

}  // namespace tenon
