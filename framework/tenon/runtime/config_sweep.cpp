// Sweeps: which settings vary, and the product of their values.
#include <tenon/core/error.h>
#include <tenon/runtime/config_sources.h>
#include <tenon/runtime/config_state.h>
#include <tenon/runtime/plugin_search.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tenon {

namespace {

constexpr std::string_view kSweep = "sweep.";

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
  const bool plain =
      value.typed.find_first_of(",") != std::string::npos && value.typed.find_first_of("\"':") == std::string::npos;
  if (is_list || !plain) return std::nullopt;
  ConfigList values;
  for (const std::string& item : split_list(value.typed)) {
    values.push_back(setting_from_argument(setting.key + "=" + item).value);
    values.back().position = value.position;
  }
  return values;
}

bool has_axis(const std::vector<Axis>& axes, std::string_view key) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.key == key; });
}

}  // namespace

void take_sweep(Config::State& state, const ConfigRequest& request) {
  std::vector<Axis> from_arguments;
  if (request.sweep_overrides) {
    std::erase_if(state.settings, [&](const Setting& setting) {
      auto values = swept_values(state, setting);
      if (!values) return false;
      from_arguments.push_back({setting.key, std::move(*values), setting.winner().key_position});
      return true;
    });
  }
  for (const Setting& setting : state.settings) {
    if (!setting.key.starts_with(kSweep)) continue;
    const std::string key = setting.key.substr(kSweep.size());
    const ConfigValue& value = setting.winner().value;
    const auto* values = std::get_if<ConfigList>(&value.value);
    if (values == nullptr) {
      throw config_error(value.position,
                         fmt::format("a sweep takes a list of values: \"{}\" = [{}, …]", key, value.text));
    }
    // A setting from the environment or the command line outranks the file's sweep over the same key.
    const Setting* stronger = state.find(key);
    const bool pinned = stronger != nullptr && stronger->winner().value.position.origin > value.position.origin;
    if (!pinned && !has_axis(from_arguments, key)) state.axes.push_back({key, *values, setting.winner().key_position});
  }
  state.axes.insert(state.axes.end(), from_arguments.begin(), from_arguments.end());
  for (const Axis& axis : state.axes) {
    if (axis.values.empty())
      throw config_error(axis.position, fmt::format("the sweep over {} has no values", axis.key));
  }
  std::erase_if(state.settings, [](const Setting& setting) {
    return setting.key.starts_with(kSweep) || (setting.key == "sweep" && setting.winner().is_empty_table);
  });
  if (request.sweep_overrides && state.axes.empty()) {
    throw ConfigError("--sweep has nothing to sweep over: add a section [sweep] to the file, or write KEY=[a, b]");
  }
}

std::vector<std::string> Config::sweep_keys() const {
  std::vector<std::string> keys;
  for (const Axis& axis : state_->axes) keys.push_back(axis.key);
  return keys;
}

std::vector<std::vector<std::string>> Config::sweep_cells() const {
  if (state_->axes.empty()) return {};
  std::vector<std::vector<std::string>> cells = {{}};
  for (const Axis& axis : state_->axes) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& cell : cells) {
      for (const ConfigValue& value : axis.values) {
        std::string text = value.text;
        // A cell gets its settings on the command line, where relative paths mean another folder.
        if (const auto* word = std::get_if<std::string>(&value.value);
            axis.key == "allocator.name" && word != nullptr) {
          const std::size_t colon = std::min(word->find(':'), word->size());
          if (is_plugin_path(word->substr(0, colon))) {
            const auto path = std::filesystem::absolute(state_->base_of(value.position) / word->substr(0, colon));
            text = fmt::format("{}{}", path.lexically_normal().string(), word->substr(colon));
          }
        }
        longer.push_back(cell);
        longer.back().push_back(axis.key + "=" + text);
      }
    }
    cells = std::move(longer);
  }
  return cells;
}

}  // namespace tenon
