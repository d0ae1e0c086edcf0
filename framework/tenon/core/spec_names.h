// SPECs of allocators, "NAME" or "PATH.so", either with ":OPTION=VALUE,…", as names that tell them apart.
#pragma once

#include <tenon/core/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// "old/buddy.so" of "old/buddy.so:chunk=1MiB".
TENON_API std::string_view word_of_spec(std::string_view spec);

/// Whether the SPEC names a file: its word ends in ".so" or has a '/' in it.
TENON_API bool names_a_file(std::string_view spec);

/// The same SPECs in the same order, each path cut to the shortest end of it that no other path among them ends in:
/// "new/buddy.so:chunk=1MiB".
TENON_API std::vector<std::string> short_specs(const std::vector<std::string>& specs);

}  // namespace tenon
