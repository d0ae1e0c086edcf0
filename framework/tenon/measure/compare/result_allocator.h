// Allocators as results name them: by SPEC, by plugin, by file.
#pragma once

#include <tenon/measure/compare/result_json.h>
#include <tenon/measure/compare/result_set.h>

#include <map>
#include <string>
#include <vector>

namespace tenon::measure {

/// The key of a sweep's rows that is a SPEC.
inline constexpr char kSweptAllocator[] = "allocator.name";

/// The SPEC of a row and the name of its plugin.
struct RowAllocator {
  std::string spec, name;
  std::string number;  ///< "#2" of the second that a bench was given of one SPEC

  std::string options() const;  ///< "chunk=1MiB"
  std::string file() const;     ///< that the SPEC names; empty where it is a name
};

/// Without a SPEC where a sweep is not over allocators.
RowAllocator allocator_of(ResultKind kind, const Json& document, const Json& row);

/// What each row's allocator is called without its options: its plugin's name; of several builds of one plugin each by
/// the end of its path.
std::vector<std::string> titles_of(const std::vector<RowAllocator>& allocators);

/// The plugins of a replay or a bench, of which builds_of() makes texts.
Json plugins_of(ResultKind kind, const Json& document);

/// "plugin mine": "sha256:" and the first digits, of each build of it.
std::map<std::string, std::string> builds_of(const Json& plugins);

}  // namespace tenon::measure
