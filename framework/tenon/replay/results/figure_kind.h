// What kind of figure a key names: whether another replay would give another value, and what it is worth where memory
// ran out. Keys are those of the JSON of replays, runs and benches.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>

#include <string>
#include <string_view>

namespace tenon::replay {

/// Of time: another measurement gives another figure. All others are counted, and repeat exactly.
TENON_API bool is_measured(std::string_view metric);

/// Means nothing where memory ran out: what was not served takes no memory, no calls and no time. That is so of all
/// figures but those about running out, about the history itself and about the time of one call or one step.
TENON_API bool needs_completion(std::string_view metric);

/// "OOM at event 12"; empty where nothing ran out.
TENON_API std::string ran_out(const ReplayRow& row);

}  // namespace tenon::replay
