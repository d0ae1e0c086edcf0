// TensorBoard events: scalars over steps in the files that TensorBoard and its kin read.
//
//   file   = record record …            record = u64 length, masked crc32c of it, Event, masked crc32c of the Event
//   Event  = protobuf: 1 wall_time double, 2 step int64, 3 file_version string, 5 Summary { 1 Value { 1 tag, 2 float }
//   }
//
// By hand: six fields of protobuf. libprotobuf would come with a code generator, and into every program that links
// Tenon.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

/// Not thread-safe. What was added before a flush survives a kill of this process.
class TENON_API TensorboardWriter {
 public:
  /// Makes `folder` and in it events.out.tfevents.SECONDS.HOST. Throws Error when it cannot.
  explicit TensorboardWriter(const std::string& folder);
  /// Flushes what it can.
  ~TensorboardWriter();
  TensorboardWriter(const TensorboardWriter&) = delete;
  TensorboardWriter& operator=(const TensorboardWriter&) = delete;

  /// One event with all of these values. `wall_time` in seconds since the epoch; 0 means now.
  void add(std::int64_t step, const std::vector<std::pair<std::string, double>>& values, double wall_time = 0);
  /// Throws Error when writing fails.
  void flush();
  const std::string& path() const { return path_; }

 private:
  void record(const std::string& event);
  std::string path_;
  std::string buffer_;
  int descriptor_ = -1;
};

/// CRC-32C (Castagnoli), as TFRecord masks it.
TENON_API std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace tenon
