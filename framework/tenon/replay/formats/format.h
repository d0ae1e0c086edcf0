// Format: all that Tenon knows of one file format of memory histories, in one descriptor.
//
//   formats.cmake ──the list──> formats() ──> detection, reading, writing, `trace convert`, messages, help
//                          └──> fuzz/     ──> a fuzz target and a corpus test for each format that is read
//
// A new format is its own files, of which one defines `const Format& NAME_format()`, a line in formats.cmake, and, if
// it is read, a folder fuzz/corpus/NAME.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/formats/io/input_file.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::replay {

struct SnapshotImage;

struct ReadOptions {
  bool with_stacks = false;   ///< keep call stacks, for flame graphs and conversions
  bool with_columns = false;  ///< keep when each event was and what each block is for: Trace::columns
  /// Of a file that a replay wrote: `recorded` is what that replay's allocator did, for pages that show the file as it
  /// is. Without, it is what is known of the recording behind it, which is what advice is about.
  bool as_replayed = false;
};

struct WriteOptions {
  /// For a format that shows segments: places the blocks. Needed where Format::shows_segments.
  std::function<SnapshotImage(const Trace&)> place;
};

/// How sure a format is that a file is one of its own.
enum class Likeness : std::uint8_t {
  kNone,
  kPossible,  ///< unless another format is certain
  kCertain
};

struct Format {
  std::string_view name;                  ///< of `--to`, of result rows, of the corpus: "snapshot"
  std::string_view files;                 ///< for people, in the plural: "PyTorch snapshots"
  std::vector<std::string_view> endings;  ///< of file names, the usual one first; none: only by its name
  std::string_view written_as;            ///< for people, what `endings` write: "Chrome counters"
  Likeness (*likeness)(std::string_view head) = nullptr;  ///< by the first bytes; null: never read
  /// One trace for each device that has a history in the file. Throws TraceError.
  std::vector<Trace> (*read)(InputFile& input, const ReadOptions& options) = nullptr;
  /// Whole or not at all, "-" and .gz as OutputFile has them. Null: never written. Throws Error.
  void (*write)(const Trace& trace, const std::string& path, const WriteOptions& options) = nullptr;
  bool records_lines = false;   ///< a recorder writes it as events happen, by the lines of memory/history/text_lines.h
  bool shows_segments = false;  ///< it writes where an allocator placed the blocks
  /// What of this trace the format has no place for, in words; null: nothing that a reader of histories would miss.
  std::vector<std::string> (*left_out)(const Trace& trace) = nullptr;
  /// Of a running device; null where there is no such form.
  void (*write_image)(const SnapshotImage& image, const std::string& path) = nullptr;
  /// For fuzzing: puts right what would stop arbitrary bytes at the door, as a checksum does. Null: nothing would.
  void (*mend)(std::vector<std::uint8_t>& bytes) = nullptr;
};

/// What `read` returns of a file with one history.
inline std::vector<Trace> only(Trace trace) {
  std::vector<Trace> traces;
  traces.push_back(std::move(trace));
  return traces;
}

/// What a form of allocations and frees alone has no place for: Format::left_out of such a one.
std::vector<std::string> left_out_of_plain(const Trace& trace);
/// The same of a form that knows no streams either.
std::vector<std::string> left_out_without_streams(const Trace& trace);

/// Every format, in the order of help and messages.
TENON_API std::span<const Format* const> formats();

/// Null when there is none of that name.
TENON_API const Format* find_format(std::string_view name);

/// The format that is written under such a file name, .gz or not; null when the ending says none.
TENON_API const Format* format_of_ending(std::string_view path);

/// The same; throws ConfigError that lists the endings.
TENON_API const Format& format_of_name(const std::string& path);

/// A format that is written. Throws ConfigError that lists their names.
TENON_API const Format& written_format(std::string_view name);

/// "text, binary, …, minimalloc or mtrace": what `--to` takes.
TENON_API std::string written_names();

/// ".trace, .tenon, .pickle, …": the usual endings.
TENON_API std::string written_endings();

/// "text histories, …, mtrace logs": what is read.
TENON_API std::string read_files();

}  // namespace tenon::replay
