// SPECs of allocators, "NAME" or "PATH.so", either with ":OPTION=VALUE,…", as names that tell them apart.
#pragma once

#include <tenon/core/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// "old/buddy.so" of "old/buddy.so:chunk=1MiB".
TENON_API std::string_view word_of_spec(std::string_view spec);

/// The other way: "buddy.so:chunk=1MiB"; the word alone where `options` is empty.
inline std::string spec_with(const std::string& word, const std::string& options) {
  return options.empty() ? word : word + ":" + options;
}

/// Whether the text means a file rather than a name: it ends in ".so" or has a '/' in it.
TENON_API bool is_plugin_path(std::string_view name_or_path);

/// Whether the SPEC's word does.
TENON_API bool names_a_file(std::string_view spec);

/// The same SPECs in the same order, each path cut to the shortest end of it that no other path among them ends in:
/// "new/buddy.so:chunk=1MiB".
TENON_API std::vector<std::string> short_specs(const std::vector<std::string>& specs);

/// What to call each of several allocators, of which `names` and `specs` stand side by side: its name; where those of
/// one name come from several files, the end of the file's path that tells them apart: "old/buddy.so". Options are not
/// in it.
TENON_API std::vector<std::string> allocator_titles(const std::vector<std::string>& names,
                                                    const std::vector<std::string>& specs);

}  // namespace tenon
