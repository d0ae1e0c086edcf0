// An allocator with options, as a case of a parameterised test.
#pragma once

#include <tenon/memory/pinned_cache.h>
#include <tenon/runtime/plugins/plugins.h>

#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

struct OptionSet {
  const char* name;
  const char* allocator;
  std::vector<std::pair<const char*, const char*>> options;
};
inline void PrintTo(const OptionSet& set, std::ostream* out) { *out << set.name; }

inline const AllocatorInfo& allocator_of(const OptionSet& set) {
  return set.allocator == std::string_view("pinned") ? pinned_cache() : find_allocator(set.allocator);
}
inline Options options_of(const OptionSet& set) {
  Options options(allocator_of(set).options);
  for (const auto& [name, value] : set.options) options.set_text(name, value);
  return options;
}

}  // namespace tenon
