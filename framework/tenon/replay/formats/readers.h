// Reading a memory history, whatever its format. Nothing in a file is ever executed, and memory stays within a small
// multiple of the (decompressed) file's size.
#pragma once

#include <tenon/replay/formats/format.h>
#include <tenon/replay/formats/io/input_file.h>
#include <tenon/replay/trace/trace.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon::replay {

/// Reads a file of any of the formats, gz or not: one Trace for each device that has a history in it. Throws TraceError
/// with file, position and reason.
TENON_API std::vector<Trace> read_traces(const std::string& path, const ReadOptions& options = {});
TENON_API std::vector<Trace> read_traces(InputFile& input, const ReadOptions& options = {});

/// The format of a file, from its first bytes; null when it is none of them.
TENON_API const Format* detect_format(std::string_view head);

}  // namespace tenon::replay
