// SPEC -> policy and options.
#include <tenon/core/error.h>
#include <tenon/core/spec_names.h>
#include <tenon/core/text/trimmed.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

namespace {

/// Up to the comma that ends it: those in brackets belong to a list, as in roundup_power2_divisions=[64:8,256:4].
std::string_view first_item(std::string_view rest) {
  int depth = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    depth += (rest[i] == '[') - (rest[i] == ']');
    if (rest[i] == ',' && depth <= 0) return rest.substr(0, i);
  }
  return rest;
}

/// For the layer that routes requests to other policies, which it names by SPEC.
ResolvedAllocator resolve_spec(std::string_view spec) {
  StackConfig config = allocator_from_spec(spec);
  return {std::move(config.policy), std::move(config.options)};
}

[[maybe_unused]] const bool kAllocatorResolverIsSet = (set_allocator_resolver(&resolve_spec), true);

}  // namespace

std::vector<std::string> split_specs(std::string_view row) {
  std::vector<std::string> specs;
  while (!row.empty()) {
    const std::string_view item = first_item(row);
    row.remove_prefix(std::min(item.size() + 1, row.size()));
    const std::size_t end_of_name = item.find_first_of(":=");
    const bool is_option = end_of_name != std::string_view::npos && item[end_of_name] == '=';
    if (is_option && !specs.empty() && specs.back().find(':') != std::string::npos) {
      specs.back() += fmt::format(",{}", item);
    } else if (!item.empty()) {
      specs.emplace_back(trimmed(item));
    }
  }
  return specs;
}

std::vector<std::pair<std::string, std::string>> options_of_spec(std::string_view spec) {
  std::vector<std::pair<std::string, std::string>> options;
  const std::size_t colon = spec.find(':');
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : spec.substr(colon + 1);
  while (!rest.empty()) {
    const std::string_view item = first_item(rest);
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      throw ConfigError(fmt::format(
          "allocator \"{}\": expected NAME=VALUE, as in caching:max_split_size=128MiB, not \"{}\"", spec, item));
    }
    const std::string name(item.substr(0, equals));
    if (std::ranges::find(options, name, &std::pair<std::string, std::string>::first) != options.end())
      throw ConfigError(fmt::format("allocator \"{}\": option '{}' is set twice", spec, name));
    options.emplace_back(name, item.substr(equals + 1));
  }
  return options;
}

void set_options_from_spec(Options& options, std::string_view spec) {
  for (const auto& [name, value] : options_of_spec(spec)) {
    try {
      options.set_text(name, value);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("allocator \"{}\": {}", spec, error.what()));
    }
  }
}

StackConfig allocator_from_spec(std::string_view spec, const std::string& base) {
  if (const std::string_view word = word_of_spec(spec); word.find(',') != std::string_view::npos && !names_a_file(spec))
    throw ConfigError(fmt::format("\"{}\" names several allocators, where one is expected: give each by itself", word));
  StackConfig config;
  config.policy = find_allocator(word_of_spec(spec), base);
  config.options = Options(config.policy.options);
  set_options_from_spec(config.options, spec);
  return config;
}

}  // namespace tenon
