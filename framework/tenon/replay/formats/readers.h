// Readers: every history format that Tenon understands. Nothing in a file is ever executed, and memory stays within a
// small multiple of the (decompressed) file's size.
//
// | format     | told by                                             | reader              |
// |------------|-----------------------------------------------------|---------------------|
// | text       | `#`, `a`, `f`, `u`, `e`, `m` lines                    | text_reader.cpp     |
// | binary     | magic TENONTRC                                      | binary_reader.cpp   |
// | snapshot   | pickle opcode PROTO                                 | snapshot_reader.cpp |
// | chrome     | `{` or `[`                                          | chrome_reader.cpp   |
// | rmm        | header line with Action and Pointer                 | csv_reader.cpp      |
// | minimalloc | header line with id, lower, upper, size             | csv_reader.cpp      |
#pragma once

#include <tenon/replay/formats/input_file.h>
#include <tenon/replay/trace/trace.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon::replay {

struct ReadOptions {
  bool with_stacks = false;  ///< keep call stacks, for flame graphs and conversions
};

/// Reads a file of any of the formats, gz or not: one Trace for each device that has a history in it. Throws TraceError
/// with file, position and reason.
TENON_API std::vector<Trace> read_traces(const std::string& path, const ReadOptions& options = {});
TENON_API std::vector<Trace> read_traces(InputFile& input, const ReadOptions& options = {});

/// The format's name, from the first bytes; empty when it is none of them.
TENON_API std::string detect_format(std::string_view head);

TENON_API Trace read_text(InputFile& input);
TENON_API Trace read_binary(InputFile& input, const ReadOptions& options);
TENON_API std::vector<Trace> read_snapshot(InputFile& input, const ReadOptions& options);
TENON_API std::vector<Trace> read_chrome(InputFile& input);
TENON_API Trace read_rmm(InputFile& input);
TENON_API Trace read_minimalloc(InputFile& input);

}  // namespace tenon::replay
