// A file that is there as a whole or not at all: written beside its place, flushed to the disk, then renamed.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace tenon {

/// Until commit() what stood at `path` is untouched, whatever goes wrong, kill -9 and a full disk included; the text is
/// in PATH.partial-PID, which goes with this object. A symbolic link stays one, and its target is replaced; a file that
/// is replaced keeps its mode. What is not a regular file (a device, a pipe), and a file in a folder that nothing can
/// be added to, is written directly. Every function throws Error with the file and the reason.
class TENON_API AtomicFile {
 public:
  /// Whether commit() waits until the disk has everything: so that the file outlives a loss of power, and that what a
  /// file system far away could not write is known.
  enum class Durable : bool { kNo, kYes };

  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  /// For a library that writes to descriptors, which must have written all before commit(). Owned by this object.
  int descriptor() const { return descriptor_; }
  /// The file has its name.
  void commit(Durable durable = Durable::kYes);

 private:
  void open();
  void open_partial(bool exists);
  [[noreturn]] void fail();
  void drop() noexcept;
  std::filesystem::path path_;     ///< as it was given, for messages
  std::filesystem::path target_;   ///< with symbolic links followed
  std::filesystem::path partial_;  ///< empty: target_ is written directly
  int descriptor_ = -1;
};

/// The text as such a file.
TENON_API void write_atomically(const std::filesystem::path& path, std::string_view text);

/// Removes what processes that are gone have left half-written in a folder: NAME.partial-PID. Waits for those that are
/// just being killed. A file system without locks keeps them all.
TENON_API void remove_dead_partials(const std::filesystem::path& folder) noexcept;

}  // namespace tenon
