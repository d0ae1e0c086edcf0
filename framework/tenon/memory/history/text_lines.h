// TextLines: the text form of a memory history, line by line. Everything that writes this form writes it through here:
// the layer `trace`, the recorder of `tenon run`, `tenon trace convert`. What the lines mean is read in
// replay/formats/tenon/text_reader.cpp, and explained line by line in replay/text_histories.md.
//
//   a ID SIZE STREAM   f ID   u ID STREAM   e   m NAME   # KEY: VALUE   #t TIME   #p PURPOSE
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/purpose.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

/// Each function returns one record with the end of its line; the view is valid until the next call. Not thread-safe.
class TENON_API TextLines {
 public:
  /// `# TEXT`
  std::string_view comment(std::string_view text);
  /// `# KEY: VALUE`
  std::string_view header(std::string_view key, std::string_view value);
  std::string_view allocate(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream);
  /// An allocation that ran out of memory, with what was reserved and what the device had left; `free` is to follow.
  std::string_view failed(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream, std::uint64_t reserved_bytes,
                          std::uint64_t device_free_bytes);
  std::string_view free(std::uint64_t id);
  /// A free that waits for a stream, until `completed`.
  std::string_view deferred_free(std::uint64_t id);
  std::string_view completed(std::uint64_t id);
  std::string_view use(std::uint64_t id, std::uint64_t stream);
  std::string_view empty_cache();
  /// Any name: what has a meaning in this form is escaped, and the ends of lines in it become spaces.
  std::string_view mark(std::string_view name);
  /// The mark that ends the blocks from before the recording.
  std::string_view recording_starts();
  /// When the lines from here on were, in microseconds; empty where it is the time of those before. To earlier readers
  /// a comment, as `meant_for` is.
  std::string_view at(std::int64_t time_us);
  /// What the allocations from here on are for; empty where it is that of those before.
  std::string_view meant_for(Purpose purpose);

 private:
  void add(std::string_view record, std::initializer_list<std::uint64_t> numbers, std::string_view before = {});
  std::string text_;
  std::optional<std::int64_t> time_us_;
  std::optional<Purpose> purpose_;
};

/// The letters with which records begin.
inline constexpr std::string_view kTextRecords = "afuem#";

/// Comments that have a meaning, with a space and a value behind them.
inline constexpr std::string_view kTextTime = "#t", kTextPurpose = "#p";

/// Marks that have a meaning: `m tenon:failed ID RESERVED LEFT`.
namespace text_marks {
inline constexpr std::string_view kFailed = "tenon:failed";        ///< the next allocation ran out of memory
inline constexpr std::string_view kDeferred = "tenon:deferred";    ///< the next free waits for a stream
inline constexpr std::string_view kCompleted = "tenon:completed";  ///< that wait is over
inline constexpr std::string_view kMark = "tenon:mark";            ///< a name that would mean something to the reader
inline constexpr std::string_view kRecordingStarts = "recording starts";  ///< ends the blocks from before it
inline constexpr std::string_view kAll[] = {kFailed, kDeferred, kCompleted, kMark, kRecordingStarts};
}  // namespace text_marks

}  // namespace tenon
