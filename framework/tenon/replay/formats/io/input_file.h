// InputFile: the bytes of a file, gz or not, through one buffer; knows where it is, and refuses decompression bombs.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tenon::replay {

class TENON_API InputFile {
 public:
  /// "-" is standard input. Throws TraceError naming the file when it cannot be opened, here and below when it cannot
  /// be read: a damaged gz stream is told by its byte in the compressed file.
  explicit InputFile(std::string path);
  /// Reads from memory: for tests and fuzzing. `bytes` outlive it.
  InputFile(std::string name, std::span<const std::uint8_t> bytes);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  /// Offset of the next byte, in decompressed bytes.
  std::uint64_t position() const { return base_ + static_cast<std::uint64_t>(next_ - begin_); }

  /// The bytes that can be looked at without a copy; empty at the end of the file.
  std::string_view available() {
    if (next_ == end_) refill();
    return {reinterpret_cast<const char*>(next_), static_cast<std::size_t>(end_ - next_)};
  }
  void consume(std::size_t bytes) { next_ += bytes; }

  /// The next byte, or -1 at the end.
  int get() {
    if (next_ == end_ && !refill()) return -1;
    return *next_++;
  }
  /// Copies `bytes` to `out`; false when the file ends before.
  bool read(void* out, std::size_t bytes);
  /// The next byte without taking it, or -1.
  int peek() {
    if (next_ == end_ && !refill()) return -1;
    return *next_;
  }
  /// The first bytes of the file, for telling formats apart. Only before anything was consumed.
  std::string_view head();
  /// Next line without its end, in `line`; false at the end of the file. Throws TraceError for a line above a mebibyte.
  bool line(std::string_view& line);
  std::uint64_t line_number() const { return line_number_; }

  /// Throws TraceError "path:line: reason".
  [[noreturn]] void fail_line(const std::string& reason) const;
  /// Throws TraceError "path: byte N: reason".
  [[noreturn]] void fail_at(std::uint64_t offset, const std::string& reason) const;

 private:
  class Source;
  bool refill();

  std::string path_;
  std::unique_ptr<Source> source_;
  const std::uint8_t* begin_ = nullptr;
  const std::uint8_t* next_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  std::uint64_t base_ = 0;
  std::uint64_t line_number_ = 0;
  std::string carry_;
};

}  // namespace tenon::replay
