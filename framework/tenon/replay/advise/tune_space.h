// The settings that `tenon tune` searches: PyTorch's, as the strings that a user pastes, and Tenon's own allocators.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/runtime/conf_policy.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::replay {

/// One setting of PyTorch's allocator with the values worth trying; the first is the default, an empty one leaves it
/// out.
struct Dimension {
  std::string key;
  std::vector<std::string> values;
};

/// One choice from every dimension, by index.
using Choice = std::vector<std::uint32_t>;

/// Values are limited to what can matter for blocks of up to `max_request_bytes`.
TENON_API std::vector<Dimension> pytorch_space(std::uint64_t max_request_bytes);

/// "expandable_segments:True,roundup_power2_divisions:8"; empty for all defaults.
TENON_API std::string conf_of(const std::vector<Dimension>& space, const Choice& choice);

/// Whether PyTorch accepts the combination and it is not the same as a simpler one.
bool is_sensible(const std::vector<Dimension>& space, const Choice& choice);

/// `chosen` over what was set before: keys that advice does not decide are kept, if PyTorch takes them.
TENON_API std::string merge_conf(std::string_view before, std::string_view chosen);

/// An [allocator] section as TOML.
TENON_API std::string toml_of(const StackConfig& policy);

}  // namespace tenon::replay
