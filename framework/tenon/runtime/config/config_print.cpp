// A configuration written out: as TOML that means the same everywhere, and with the history of each setting.
// Declared in config.h.
#include <tenon/core/units.h>
#include <tenon/runtime/config/config_state.h>
#include <tenon/runtime/config/toml_reader.h>
#include <tenon/runtime/plugins/plugin_search.h>

#include <fmt/format.h>

namespace tenon {

namespace {

using State = Config::State;

std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

/// Bytes without a unit would not be read again where they look like a forgotten one.
std::string size_text(std::size_t bytes, bool is_device_memory) {
  std::string text = format_size_exact(bytes);
  if (is_device_memory && !forgotten_unit(text).empty()) text += "B";
  return text;
}

std::string toml_of(const Options& options, const SectionSpec& section, const OptionSpec& option) {
  if (contains(section.lists, option.name)) {
    std::string list;
    for (const std::string& item : split_list(options.text(option.name)))
      list += (list.empty() ? "" : ", ") + toml_quote(item);
    return "[" + list + "]";
  }
  switch (option.type) {
    case OptionType::kBoolean:
      return options.boolean(option.name) ? "true" : "false";
    case OptionType::kInteger:
      if (options.integer(option.name) == 0 && !option.choices.empty()) return toml_quote(option.choices.front());
      return fmt::format("{}", options.integer(option.name));
    case OptionType::kReal:
      return real_text(options.real(option.name));
    case OptionType::kSize:
      return toml_quote(size_text(options.size(option.name), is_device_memory(section, option)));
    case OptionType::kText:
      return toml_quote(options.text(option.name));
  }
  return {};
}

std::string absolute_spec(const std::string& spec, const std::filesystem::path& base) {
  const std::size_t colon = std::min(spec.find(':'), spec.size());
  if (!is_plugin_path(spec.substr(0, colon))) return spec;
  return std::filesystem::absolute(base / spec.substr(0, colon)).lexically_normal().string() + spec.substr(colon);
}

/// The value in force; paths that the runtime itself knows are made absolute, so that the text may stand anywhere.
std::string value_of(const State& state, const SectionSpec& section, const OptionSpec& option) {
  const Options& options = state.options.find(section.name)->second;
  const std::string key = section.name.empty() ? option.name : section.name + "." + option.name;
  const Setting* setting = state.find(key);
  const Position position = setting == nullptr ? Position{} : setting->winner().value.position;
  if (key == "plugins.search" || key == "plugins.load") {
    std::string list;
    for (const std::string& item : split_list(options.text(option.name))) {
      const bool is_path = option.name == "search" || is_plugin_path(item);
      const auto path = std::filesystem::absolute(state.base_of(position) / item).lexically_normal().string();
      list += (list.empty() ? "" : ", ") + toml_quote(is_path ? path : item);
    }
    return "[" + list + "]";
  }
  if (key == "allocator.name") return toml_quote(absolute_spec(state.allocator_spec, state.base_of(position)));
  return toml_of(options, section, option);
}

/// Calls `visit` for each section in the order to show: the fixed ones, each followed by those of plugins below it.
template <class Visit>
void each_section(const State& state, Visit visit) {
  for (const SectionSpec& section : state.book.fixed()) {
    visit(section);
    for (const auto& [name, inner] : state.book.dynamic()) {
      if (!section.name.empty() && name.starts_with(section.name + ".") && state.options.contains(name)) visit(inner);
    }
  }
}

}  // namespace

std::string Config::resolved_toml() const {
  std::string text = "# Every setting: a run of this file repeats the experiment.\n";
  if (state_->options.at("").text("name").empty()) {
    text += fmt::format("name = {}\n", toml_quote(experiment().name));
  }
  each_section(*state_, [&](const SectionSpec& section) {
    if (section.options.empty()) return;
    if (!section.name.empty()) text += fmt::format("\n[{}]\n", section.name);
    for (const OptionSpec& option : section.options) {
      if (section.name.empty() && state_->options.at("").is_default(option.name)) continue;
      text += fmt::format("{} = {}\n", option.name, value_of(*state_, section, option));
    }
  });
  return text;
}

std::vector<ExplainedSetting> Config::explain() const {
  std::vector<ExplainedSetting> list;
  each_section(*state_, [&](const SectionSpec& section) {
    for (const OptionSpec& option : section.options) {
      ExplainedSetting explained;
      explained.key = section.name.empty() ? option.name : section.name + "." + option.name;
      explained.text = value_of(*state_, section, option);
      explained.help = option.help;
      explained.choices = option.choices;
      if (const Setting* setting = state_->find(explained.key)) {
        explained.winner = setting->winner().value.position;
        for (auto entry = setting->entries.rbegin() + 1; entry != setting->entries.rend(); ++entry) {
          explained.overruled.push_back({entry->value.position, entry->value.text});
        }
      }
      list.push_back(std::move(explained));
    }
  });
  return list;
}

}  // namespace tenon
