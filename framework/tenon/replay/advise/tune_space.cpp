// The search space of `tenon tune`.
#include <tenon/core/units.h>
#include <tenon/replay/advise/tune_space.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::replay {

namespace {

std::string_view key_of(std::string_view setting) { return setting.substr(0, setting.find(':')); }

std::string_view value_of(const std::vector<Dimension>& space, const Choice& choice, std::string_view key) {
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (space[i].key == key) return space[i].values[choice[i]];
  }
  return {};
}

}  // namespace

std::vector<Dimension> pytorch_space(std::uint64_t max_request_bytes) {
  std::vector<std::string> splits = {""};
  std::vector<std::string> slacks = {""};
  for (std::uint64_t mebibytes = 32; mebibytes <= 4096 && mebibytes * MiB / 2 <= max_request_bytes; mebibytes *= 2) {
    splits.push_back(std::to_string(mebibytes));
    slacks.push_back(std::to_string(mebibytes));
  }
  return {{"expandable_segments", {"", "True"}},
          {"max_split_size_mb", std::move(splits)},
          {"roundup_power2_divisions", {"", "2", "4", "8", "16", "32", "64"}},
          {"large_segment_size_mb", {"", "12", "16", "32", "64", "128", "256"}},
          {"max_non_split_rounding_mb", std::move(slacks)}};
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
  const long segment = number("large_segment_size_mb", 20);
  const long split = number("max_split_size_mb", 0);
  const long slack = number("max_non_split_rounding_mb", 0);
  if (split != 0 && split < segment) return false;
  if (slack != 0 && (slack < segment || split == 0)) return false;
  // Growing without bound: free runs above the limit are refused to smaller requests (PyTorch issue 123548).
  return split == 0 || value_of(space, choice, "expandable_segments").empty();
}

std::string merge_conf(std::string_view before, std::string_view chosen) {
  static constexpr std::string_view kSearched[] = {"expandable_segments",       "max_split_size_mb",
                                                   "roundup_power2_divisions",  "large_segment_size_mb",
                                                   "max_non_split_rounding_mb", "garbage_collection_threshold"};
  const std::vector<std::string> wanted = conf_settings(chosen);
  std::string conf(chosen);
  for (const std::string& setting : conf_settings(before)) {
    const std::string_view key = key_of(setting);
    const bool is_searched = std::ranges::find(kSearched, key) != std::end(kSearched);
    const bool is_chosen = std::ranges::find(wanted, key, key_of) != wanted.end();
    if (!is_searched && !is_chosen) add_if_valid(conf, setting);
  }
  return conf;
}

std::string toml_of(const StackConfig& policy) {
  std::string toml = fmt::format("[allocator]\nname = \"{}\"\n", policy.policy.name);
  const auto entries = policy.options.entries(true);
  if (!entries.empty()) toml += fmt::format("[allocator.{}]\n", policy.policy.name);
  for (const auto& [name, value] : entries) {
    const auto spec = std::ranges::find(policy.options.schema(), name, &OptionSpec::name);
    const bool is_bare =
        spec != policy.options.schema().end() &&
        (spec->type == OptionType::kBoolean || spec->type == OptionType::kInteger || spec->type == OptionType::kReal);
    toml += is_bare ? fmt::format("{} = {}\n", name, value) : fmt::format("{} = \"{}\"\n", name, value);
  }
  return toml;
}

}  // namespace tenon::replay
