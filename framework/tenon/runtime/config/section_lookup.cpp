// Looking up sections and keys, and naming the nearest known one.
#include <tenon/core/options.h>
#include <tenon/device/device_driver.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/runtime/config/section_lookup.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/runtime/plugins/shipped_plugins.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

namespace {

constexpr std::string_view kDevice = "device.";
constexpr std::string_view kAllocator = "allocator.";
constexpr std::string_view kDistributed = "distributed.";

std::vector<std::string> names_of(const OptionSchema& options) {
  std::vector<std::string> names;
  for (const OptionSpec& option : options) names.push_back(option.name);
  return names;
}

/// Kinds that a file may configure on a machine that lacks them: their options are not checked there.
std::vector<std::string> shipped_kinds() {
  std::vector<std::string> kinds;
  for (const ShippedBackend& backend : shipped_backends()) kinds.emplace_back(backend.kind);
  return kinds;
}

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const LayerInfo& layer : built_in_layers()) names.push_back(layer.name);
  return names;
}

std::vector<std::string> known_kinds() {
  std::vector<std::string> kinds = shipped_kinds();
  for (const std::string& loaded : backend_names()) kinds.push_back(loaded);
  return kinds;
}

std::vector<std::string> known_communicators() {
  std::vector<std::string> names = communicator_names();
  for (const ShippedCommunicator& shipped : shipped_communicators()) names.emplace_back(shipped.name);
  return names;
}

/// Allocators and layers: each has a section of its own.
std::vector<std::string> known_policies() {
  std::vector<std::string> names = layer_names();
  for (const std::string& policy : allocator_names()) names.push_back(policy);
  return names;
}

}  // namespace

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

KeyParts split_key(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  if (dot == std::string::npos) return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

const SectionSpec* SectionLookup::find_fixed(std::string_view name) const {
  const auto found = std::find_if(fixed_.begin(), fixed_.end(), [&](const SectionSpec& s) { return s.name == name; });
  return found == fixed_.end() ? nullptr : &*found;
}

const OptionSpec& SectionLookup::option(const SectionSpec& section, std::string_view name) const {
  const auto found = std::find_if(section.options.begin(), section.options.end(),
                                  [&](const OptionSpec& option) { return option.name == name; });
  TENON_ASSERT(found != section.options.end(), "an option that section_of() has found");
  return *found;
}

const SectionSpec& SectionLookup::device_section(const std::string& kind) {
  const std::string name = std::string(kDevice) + kind;
  if (const auto known = dynamic_.find(name); known != dynamic_.end()) return known->second;
  Backend& backend = find_backend(kind);
  return dynamic_.emplace(name, SectionSpec{name, backend.summary(), backend.options(), {}, {}}).first->second;
}

const SectionSpec& SectionLookup::allocator_section(const std::string& wanted) {
  const std::string name = std::string(kAllocator) + wanted;
  if (const auto known = dynamic_.find(name); known != dynamic_.end()) return known->second;
  if (contains(layer_names(), wanted)) {
    const LayerInfo& layer = find_layer(wanted);
    return dynamic_.emplace(name, SectionSpec{name, layer.summary, layer.options, {}, {}}).first->second;
  }
  const AllocatorInfo& policy = find_allocator(wanted);
  return dynamic_.emplace(name, SectionSpec{name, policy.summary, policy.options, {}, {}}).first->second;
}

const SectionSpec& SectionLookup::communicator_section(const std::string& wanted) {
  const std::string name = std::string(kDistributed) + wanted;
  if (const auto known = dynamic_.find(name); known != dynamic_.end()) return known->second;
  const CommunicatorInfo& info = find_communicator(wanted);
  return dynamic_.emplace(name, SectionSpec{name, info.summary, info.options, {}, {}}).first->second;
}

const SectionSpec* SectionLookup::find_communicator_section(const std::string& name, const Position& position) {
  const std::string wanted = name.substr(kDistributed.size());
  try {
    return &communicator_section(wanted);
  } catch (const ConfigError& error) {
    const std::vector<std::string> known = known_communicators();
    if (contains(known, wanted)) return nullptr;
    const std::string near = nearest_name(wanted, known);
    throw config_error(
        position, near.empty() ? fmt::format("[{}]: {}", name, error.what())
                               : fmt::format("unknown section [{}]; did you mean [{}{}]?", name, kDistributed, near));
  }
}

const SectionSpec* SectionLookup::find_section(const std::string& name, const Position& position) {
  if (const SectionSpec* section = find_fixed(name)) return section;
  if (name.starts_with(kDistributed)) return find_communicator_section(name, position);
  const bool is_device = name.starts_with(kDevice);
  if (!is_device && !name.starts_with(kAllocator)) unknown_section(name, position);
  const std::string wanted = name.substr((is_device ? kDevice : kAllocator).size());
  try {
    return is_device ? &device_section(wanted) : &allocator_section(wanted);
  } catch (const ConfigError& error) {
    if (is_device && contains(shipped_kinds(), wanted)) return nullptr;
    const std::string near = nearest_name(wanted, is_device ? known_kinds() : known_policies());
    if (near.empty()) throw config_error(position, fmt::format("[{}]: {}", name, error.what()));
    throw config_error(
        position, fmt::format("unknown section [{}]; did you mean [{}{}]?{}", name, is_device ? kDevice : kAllocator,
                              near, is_device ? "" : " One of a plugin is known where its .so is named in this file"));
  } catch (const PluginError& error) {
    throw PluginError(fmt::format("{}: [{}]: {}", position.str(), name, error.what()));
  }
}

const SectionSpec* SectionLookup::section_of(const std::string& key, const Position& position,
                                             const Position& section_position) {
  const KeyParts parts = split_key(key);
  if (parts.section.empty() && find_fixed(parts.option) != nullptr) {
    throw config_error(
        position, fmt::format("'{0}' is a section, not a value: write it as [{0}] with keys below it, or as {0}.KEY",
                              parts.option));
  }
  const SectionSpec* section = find_section(parts.section, section_position);
  if (section != nullptr && !contains(names_of(section->options), parts.option)) {
    unknown_option(*section, parts.option, position);
  }
  return section;
}

void SectionLookup::require_section(const std::string& name, const Position& position) { find_section(name, position); }

void SectionLookup::unknown_section(const std::string& name, const Position& position) const {
  if (name == "sweep") throw config_error(position, "a sweep varies settings of other sections, and [sweep] has none");
  std::vector<std::string> names = {"sweep"};
  for (const SectionSpec& section : fixed_) {
    if (!section.name.empty()) names.push_back(section.name);
  }
  const std::string near = nearest_name(name, names);
  throw config_error(position,
                     near.empty()
                         ? fmt::format("unknown section [{}]; known: {}, device.KIND, allocator.NAME, distributed.NAME",
                                       name, fmt::join(names, ", "))
                         : fmt::format("unknown section [{}]; did you mean [{}]?", name, near));
}

void SectionLookup::unknown_option(const SectionSpec& section, const std::string& option,
                                   const Position& position) const {
  const std::string shown = section.name.empty() ? option : section.name + "." + option;
  const std::vector<std::string> known = names_of(section.options);
  std::string hint;
  if (const std::string near = nearest_name(option, known); !near.empty()) {
    hint = fmt::format("did you mean '{}'?", near);
  } else {
    for (const SectionSpec& other : fixed_) {
      if (contains(names_of(other.options), option)) hint = fmt::format("did you mean '{}.{}'?", other.name, option);
    }
  }
  if (hint.empty()) {
    hint = known.empty() ? "there are no keys here" : fmt::format("known here: {}", fmt::join(known, ", "));
  }
  if (section.name.empty() && hint.starts_with("known")) {
    std::vector<std::string> sections;
    for (const SectionSpec& other : fixed_) {
      if (!other.name.empty()) sections.push_back(other.name);
    }
    if (const std::string near = nearest_name(option, sections); !near.empty())
      hint = fmt::format("did you mean '[{}]'?", near);
  }
  throw config_error(position, fmt::format("unknown key '{}'; {}", shown, hint));
}

}  // namespace tenon
