// A file that is there as a whole or not at all: written beside its place, flushed to the disk, then renamed.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace tenon {

/// Until commit() what stood at `path` is untouched, whatever goes wrong, kill -9 and a full disk included; the text is
/// in PATH.partial-PID, which goes with this object. Every function throws Error with the file and the reason.
class TENON_API AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  /// Everything is on the disk, and has its name.
  void commit();

 private:
  [[noreturn]] void fail();
  void drop() noexcept;
  std::filesystem::path path_;
  std::filesystem::path partial_;
  int descriptor_ = -1;
};

/// The text as such a file.
TENON_API void write_atomically(const std::filesystem::path& path, std::string_view text);

/// Removes what processes that are gone have left half-written in a folder: NAME.partial-PID.
TENON_API void remove_dead_partials(const std::filesystem::path& folder) noexcept;

}  // namespace tenon
