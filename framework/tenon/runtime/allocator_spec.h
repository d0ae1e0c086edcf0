// SPEC: an allocator with its options in one word, as the command line has it: "caching:max_split_size=128MiB".
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/memory/pytorch/conf.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

/// The SPEC of devices for which nobody chose an allocator.
inline constexpr std::string_view kDefaultAllocator = kNativeAllocator;

/// A policy by name or path, with options as in a SPEC: "expandable", "./mine.so", "caching:max_split_size=128MiB".
/// Throws ConfigError or PluginError.
TENON_API StackConfig allocator_from_spec(std::string_view spec, const std::string& base = {});

/// NAME and VALUE of each option in a SPEC, in its order. Throws ConfigError that quotes the SPEC.
TENON_API std::vector<std::pair<std::string, std::string>> options_of_spec(std::string_view spec);

/// SPECs in a row, as a sweep over allocators has them: "a.so:x=1,y=2,b" is "a.so:x=1,y=2" and "b". What has an '=' and
/// no ':' before it is one more option of the SPEC before it.
TENON_API std::vector<std::string> split_specs(std::string_view row);

/// The options part of a SPEC, on top of what `options` holds. Throws ConfigError that quotes the SPEC.
TENON_API void set_options_from_spec(Options& options, std::string_view spec);

}  // namespace tenon
