// One written value into one typed option. Declared in config_state.h.
#include <tenon/core/error.h>
#include <tenon/core/text/trimmed.h>
#include <tenon/runtime/config/config_state.h>
#include <tenon/runtime/device_setup.h>

#include <fmt/format.h>

namespace tenon {

namespace {

std::string label_of(const SectionSpec& section) {
  return section.name.empty() ? "" : fmt::format("[{}] ", section.name);
}

/// The items of a list setting. On the command line a bare "trace,limit" or "[trace,limit]" will do.
std::vector<std::string> items_of(const ConfigValue& value, const std::string& what) {
  if (const auto* list = std::get_if<ConfigList>(&value.value)) {
    std::vector<std::string> items;
    for (const ConfigValue& item : *list) {
      const auto* word = std::get_if<std::string>(&item.value);
      if (word == nullptr || word->empty() || word->find(',') != std::string::npos) {
        throw config_error(item.position.line > 0 ? item.position : value.position,
                           fmt::format("{} expects a list of strings; got {}", what, item.text));
      }
      items.push_back(*word);
    }
    return items;
  }
  if (value.bare && std::holds_alternative<std::string>(value.value)) {
    std::string text = std::get<std::string>(value.value);
    if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
    std::vector<std::string> items = split_list(text);
    for (std::string& item : items) item = std::string(trimmed(item));
    return items;
  }
  throw config_error(value.position,
                     fmt::format("{} expects a list of strings, like [\"a\", \"b\"]; got {}", what, value.text));
}

std::string absolute(const std::string& path, const std::filesystem::path& base) {
  return path.empty() ? path : std::filesystem::absolute(base / path).lexically_normal().string();
}

/// Of several values with commas between them where one is taken: KEY=a,b.
std::string_view sweep_hint(const ConfigValue& value) {
  return value.position.origin == Origin::kCommandLine && value.typed.find(',') != std::string::npos
             ? "; to run them all add --sweep"
             : "";
}

}  // namespace

void set_option(Options& options, const SectionSpec& section, const OptionSpec& option, const ConfigValue& value,
                const std::filesystem::path& base) {
  const std::string what = fmt::format("{}option '{}'", label_of(section), option.name);
  if (contains(section.lists, option.name)) {
    options.set(option.name, fmt::format("{}", fmt::join(items_of(value, what), ",")));
    return;
  }
  if (std::holds_alternative<ConfigList>(value.value)) {
    const bool command_line = value.position.origin == Origin::kCommandLine;
    throw config_error(value.position, fmt::format("{} takes one value, not a list; to run them all {}", what,
                                                   command_line ? "add --sweep" : "put the list under [sweep]"));
  }
  if (std::holds_alternative<std::monostate>(value.value)) {
    throw config_error(value.position, fmt::format("{} expects a {}; got {}", what, name_of(option.type), value.text));
  }
  OptionValue converted = std::visit(
      [&](const auto& held) -> OptionValue {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::monostate> || std::is_same_v<Held, ConfigList>) {
          return std::string();
        } else {
          return held;
        }
      },
      value.value);
  if (option.type == OptionType::kText && value.bare && !std::holds_alternative<std::string>(converted))
    converted = value.typed;
  if (contains(section.paths, option.name) && std::holds_alternative<std::string>(converted)) {
    converted = absolute(std::get<std::string>(converted), base);
  }
  try {
    if (is_device_memory(section, option)) refuse_forgotten_unit(option.name, converted);
    options.set(option.name, std::move(converted));
  } catch (const ConfigError& error) {
    throw config_error(value.position, fmt::format("{}{}{}", label_of(section), error.what(), sweep_hint(value)));
  }
}

}  // namespace tenon
