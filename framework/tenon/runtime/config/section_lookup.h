// All sections that a configuration may have: the fixed ones, and those that plugins declare, looked up by name when
// needed.
#pragma once

#include <tenon/runtime/config/config_value.h>
#include <tenon/runtime/config/section_spec.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// "train.batch_size" -> {"train", "batch_size"}; "name" -> {"", "name"}.
struct KeyParts {
  std::string section;
  std::string option;
};
KeyParts split_key(const std::string& key);

bool contains(const std::vector<std::string>& words, std::string_view word);

class SectionLookup {
 public:
  explicit SectionLookup(std::vector<SectionSpec> fixed) : fixed_(std::move(fixed)) {}

  /// The section that `key` belongs to, its option known to be declared there. [device.KIND] loads the plugin of that
  /// kind, [allocator.NAME] the one that supplies the policy, unless NAME is a layer, [distributed.NAME] a
  /// communicator's. Throws ConfigError at `position` for an unknown section or key, naming the nearest known one. Null
  /// for [device.KIND] of a shipped kind, or [distributed.NAME] of a shipped communicator, whose plugin is not
  /// installed here: its options cannot be checked and are not needed. A wrong section is shown at `section_position`,
  /// its header, a wrong key at `position`.
  const SectionSpec* section_of(const std::string& key, const Position& position, const Position& section_position);

  /// For a section without keys: that it exists at all.
  void require_section(const std::string& name, const Position& position);

  const OptionSpec& option(const SectionSpec& section, std::string_view name) const;
  const SectionSpec* find_fixed(std::string_view name) const;
  const std::vector<SectionSpec>& fixed() const { return fixed_; }
  const std::map<std::string, SectionSpec, std::less<>>& dynamic() const { return dynamic_; }

  const SectionSpec& device_section(const std::string& kind);
  const SectionSpec& allocator_section(const std::string& name);
  const SectionSpec& communicator_section(const std::string& name);

 private:
  const SectionSpec* find_section(const std::string& name, const Position& position);
  const SectionSpec* find_communicator_section(const std::string& name, const Position& position);
  [[noreturn]] void unknown_section(const std::string& name, const Position& position) const;
  [[noreturn]] void unknown_option(const SectionSpec& section, const std::string& option,
                                   const Position& position) const;

  std::vector<SectionSpec> fixed_;
  std::map<std::string, SectionSpec, std::less<>> dynamic_;
};

}  // namespace tenon
