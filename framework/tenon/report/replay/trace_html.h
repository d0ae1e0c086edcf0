// One history as one offline page: live memory, who holds it at the peak, how an allocator lays it out.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>

#include <string>
#include <vector>

namespace tenon {

/// Writes the page: live memory, who holds it, the recorded segments where the file has them (read with stacks). `rows`
/// are replays to be shown beside them, each with its curve and layout; none are needed. Throws Error when the file
/// cannot be written.
TENON_API void write_trace_html(const std::string& path, const replay::Trace& trace,
                                const std::vector<replay::ReplayRow>& rows);

}  // namespace tenon
