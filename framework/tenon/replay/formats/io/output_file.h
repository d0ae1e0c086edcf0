// OutputFile: buffered writing, gz when the name ends in .gz, all or nothing as AtomicFile has it.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/files/atomic_file.h>

#include <cstdint>
#include <optional>
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
  void flush();
  [[noreturn]] void fail() const;
  std::string path_;
  std::optional<AtomicFile> target_;  ///< empty: standard output
  std::string buffer_;
  void* file_ = nullptr;  ///< a gzFile
};

}  // namespace tenon::replay
