// The search space of `tenon tune`.
#include <tenon/core/units.h>
#include <tenon/memory/pytorch/sizes.h>
#include <tenon/replay/advise/pytorch_settings.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/runtime/config/toml_reader.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::replay {

namespace {

std::string_view value_of(const std::vector<Dimension>& space, const Choice& choice, std::string_view key) {
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (space[i].key == key) return space[i].values[choice[i]];
  }
  return {};
}

}  // namespace

std::vector<Dimension> pytorch_space(std::uint64_t max_request_bytes) {
  std::vector<Dimension> space;
  for (const PytorchSetting& setting : pytorch_settings()) {
    if (setting.searched.empty()) continue;
    space.push_back({std::string(setting.key), {""}});
    Dimension& dimension = space.back();
    for (const std::string_view value : setting.searched) {
      const std::string text(value);
      if (!setting.limits_blocks || std::stoull(text) * MiB / 2 <= max_request_bytes) dimension.values.push_back(text);
    }
  }
  return space;
}

std::string conf_of(const std::vector<Dimension>& space, const Choice& choice) {
  std::string conf;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const std::string& value = space[i].values[choice[i]];
    if (!value.empty()) conf += (conf.empty() ? "" : ",") + space[i].key + ":" + value;
  }
  return conf;
}

bool is_sensible(const std::vector<Dimension>& space, const Choice& choice) {
  const auto number = [&](std::string_view key, long fallback) {
    const std::string text(value_of(space, choice, key));
    return text.empty() ? fallback : std::stol(text);
  };
  const long segment = number("large_segment_size_mb", pytorch::kLargeSegmentBytes / MiB);
  const long split = number("max_split_size_mb", 0);
  const long slack = number("max_non_split_rounding_mb", 0);
  if (split != 0 && split < segment) return false;
  if (slack != 0 && (slack < segment || split == 0)) return false;
  if (value_of(space, choice, kExpandableSegments).empty()) return true;
  return std::ranges::all_of(pytorch_settings(), [&](const PytorchSetting& setting) {
    return setting.suits_expandable || value_of(space, choice, setting.key).empty();
  });
}

std::string merge_conf(std::string_view before, std::string_view chosen) {
  const std::vector<std::string> wanted = conf_settings(chosen);
  std::string conf(chosen);
  for (const std::string& setting : conf_settings(before)) {
    const std::string_view key = key_of(setting);
    const bool is_chosen = std::ranges::find(wanted, key, key_of) != wanted.end();
    if (find_pytorch_setting(key) == nullptr && !is_chosen) add_if_valid(conf, setting);
  }
  return conf;
}

std::string toml_of(const StackConfig& policy) {
  std::string toml = fmt::format("[allocator]\nname = \"{}\"\n", policy.policy.name);
  const auto entries = policy.options.entries(true);
  if (!entries.empty()) toml += fmt::format("[allocator.{}]\n", policy.policy.name);
  for (const auto& [name, value] : entries) {
    const auto spec = std::ranges::find(policy.options.schema(), name, &OptionSpec::name);
    const bool is_bare = spec != policy.options.schema().end() &&
                         (spec->type == OptionType::kBoolean || spec->type == OptionType::kReal ||
                          (spec->type == OptionType::kInteger &&
                           std::ranges::find(spec->choices, value) == spec->choices.end()));  // a word for 0 is text
    toml += fmt::format("{} = {}\n", name, is_bare ? value : toml_quote(value));
  }
  return toml;
}

}  // namespace tenon::replay
