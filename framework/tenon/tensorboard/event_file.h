// An event file of TensorBoard: records, each a message of Summary values (messages.h).
//
//   file   = record record …     record = u64 length, masked CRC-32C of it, Event, masked CRC-32C of the Event
//
// Fields and numbers: event.proto of TensorFlow and record_writer.h.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::tensorboard {

/// Not thread-safe. Only whole records are handed to the system, so that a file is readable however its process ends.
class TENON_API EventFile {
 public:
  /// Makes `folder` and in it events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER and the suffix, a name that no other
  /// writer has. Throws Error where it cannot.
  explicit EventFile(const std::string& folder, std::string_view suffix = {});
  /// Flushes what it can.
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// One event with the values of `summary`, a message. `wall_time` in seconds since the epoch; none: now. Throws Error
  /// where a full buffer cannot be written.
  void add(std::string_view summary, std::int64_t step, std::optional<double> wall_time = {});
  /// Says that what an earlier run wrote for `step` and later ones is void. Throws Error as add().
  void add_restart(std::int64_t step);
  /// Hands everything to the system, so that it survives a kill of this process. Throws Error when that fails: what
  /// waited is lost then, and what is added later follows the last whole record.
  void flush();
  /// Events that wait to be flushed.
  std::size_t waiting() const { return waiting_; }
  const std::string& path() const { return path_; }

 private:
  void record(std::string_view event);

  std::string path_;
  std::string buffer_;
  std::size_t waiting_ = 0;
  std::int64_t whole_bytes_ = 0;  ///< of the file: what follows is a part of a record
  int descriptor_ = -1;
};

/// CRC-32C (Castagnoli), as TFRecord masks it.
TENON_API std::uint32_t masked_crc32c(std::string_view bytes);

/// Seconds since the epoch.
TENON_API double wall_time_now();

}  // namespace tenon::tensorboard
