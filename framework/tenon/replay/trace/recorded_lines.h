// RecordedLines: what a file says of its recording besides the events, as `key: value` lines. A text history has them
// as comments, a binary one as headers, a snapshot that Tenon wrote as a dict: whichever form a history passes through,
// it is judged as it was before.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/trace/trace.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {

using RecordedLines = std::vector<std::pair<std::string, std::string>>;

/// Settings, figures and remarks. Device calls are not among them: the binary form alone has a place for those.
TENON_API RecordedLines recorded_lines(const Trace& trace);

/// Takes such lines out of the trace's header and believes them; figures are capped at 2^60, a line that says something
/// else stays where it is. A recording known from them has no device calls.
TENON_API void take_recorded_lines(Trace& trace);

/// What a recording under these settings states: PyTorch's defaults have a word of their own.
std::pair<std::string, std::string> settings_line(const std::string& pytorch_conf);

/// Adds a note that is not there yet.
void add_note(Trace& trace, const std::string& note);

}  // namespace tenon::replay
