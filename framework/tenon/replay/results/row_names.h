// What the allocator of a row is called beside those of other rows.
#pragma once

#include <tenon/replay/engine/replay.h>

#include <string>
#include <vector>

namespace tenon::replay {

/// The name of each row's allocator; where rows of one name come from several files, the end of the file's path that
/// tells them apart: "old/buddy.so". Options are not in it.
TENON_API std::vector<std::string> allocator_names(const std::vector<ReplayRow>& rows);

/// What each row is called where its options do not stand beside it: what was typed, with a path cut short.
TENON_API std::vector<std::string> row_titles(const std::vector<ReplayRow>& rows);

}  // namespace tenon::replay
