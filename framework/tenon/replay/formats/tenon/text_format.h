// The plain text form: one record a line, as memory/history/text_lines.h has them. replay/text_histories.md explains
// each.
#pragma once

#include <tenon/replay/formats/format.h>

namespace tenon::replay {

Trace read_text(InputFile& input, const ReadOptions& options);

/// Reading it back gives the same events.
void write_text(const Trace& trace, const std::string& path);

}  // namespace tenon::replay
