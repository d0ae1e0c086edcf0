// The search space of `tenon tune`.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/pytorch_conf.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::replay {

namespace {

/// "a:1,b:[x:2,y:3]" -> {a, 1}, {b, [x:2,y:3]}.
std::vector<std::pair<std::string, std::string>> pairs_of(std::string_view conf) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::string item;
  int depth = 0;
  const auto end_item = [&] {
    const std::size_t colon = item.find(':');
    if (colon != std::string::npos) {
      pairs.emplace_back(item.substr(0, colon), item.substr(colon + 1));
    } else if (!item.empty()) {
      pairs.emplace_back(item, "");
    }
    item.clear();
  };
  for (const char c : conf) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth == 0) {
      end_item();
    } else if (c != ' ') {
      item.push_back(c);
    }
  }
  end_item();
  return pairs;
}

bool add_if_valid(std::string& conf, const std::string& setting) {
  std::string longer = conf + (conf.empty() ? "" : ",") + setting;
  try {
    static_cast<void>(parse_pytorch_conf(longer));
  } catch (const Error&) {
    return false;
  }
  conf = std::move(longer);
  return true;
}

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
  const auto wanted = pairs_of(chosen);
  std::string conf(chosen);
  for (const auto& [key, value] : pairs_of(before)) {
    const bool is_searched = std::ranges::find(kSearched, key) != std::end(kSearched);
    const bool is_chosen = std::ranges::any_of(wanted, [&](const auto& pair) { return pair.first == key; });
    if (!is_searched && !is_chosen) add_if_valid(conf, key + ":" + value);
  }
  return conf;
}

std::vector<std::string> settings_of(std::string_view conf) {
  std::vector<std::string> settings;
  for (const auto& [key, value] : pairs_of(conf)) settings.push_back(fmt::format("{}:{}", key, value));
  return settings;
}

std::string valid_part(std::string_view conf, std::vector<std::string>* dropped) {
  std::string valid;
  for (const std::string& setting : settings_of(conf)) {
    if (!add_if_valid(valid, setting) && dropped != nullptr) dropped->push_back(setting);
  }
  return valid;
}

StackConfig policy_of_conf(std::string_view conf) {
  const PytorchConf parsed = parse_pytorch_conf(conf);
  StackConfig config;
  config.policy = find_allocator(parsed.allocator);
  config.options = Options(config.policy.options);
  for (const auto& [name, value] : parsed.options) config.options.set_text(name, value);
  return config;
}

std::string conf_of_policy(const StackConfig& policy) {
  if (!policy.policy.traits.pytorch_conf) return {};
  std::string conf = *policy.policy.traits.pytorch_conf;
  for (const auto& [name, value] : policy.options.entries(true))
    add_if_valid(conf, setting_of_option(name, value));  // not those that are ours alone
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
