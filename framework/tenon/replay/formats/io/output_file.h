// OutputFile: buffered writing, gz when the name ends in .gz, all or nothing.
//
// A regular file is written beside its place, as NAME.partial-PID, and takes it when it is closed: until then, and
// after a failed write, what stood there before is untouched. A device or a pipe is written directly and never removed.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tenon::replay {

class TENON_API OutputFile {
 public:
  /// "-" is standard output. Throws Error naming the file and the system's reason.
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes) {
    buffer_.append(bytes);
    if (buffer_.size() >= kBufferBytes) flush();
  }
  void put(char byte) { buffer_.push_back(byte); }
  void number(std::uint64_t value);
  /// Everything reaches the file, which then takes its place.
  void close();
  const std::string& path() const { return path_; }

 private:
  static constexpr std::size_t kBufferBytes = 1 << 18;
  /// A descriptor, or -1 with errno.
  int open_target();
  void flush();
  [[noreturn]] void fail() const;
  std::string path_;
  std::string target_;   ///< path_ with symbolic links followed
  std::string partial_;  ///< empty: target_ is written directly
  std::string buffer_;
  void* file_ = nullptr;  ///< a gzFile
};

}  // namespace tenon::replay
