// SHA-256 of a file, as sha256sum prints it: results record which plugin binaries they were made with.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace tenon {

/// 64 hexadecimal digits. Throws Error when the file cannot be read.
TENON_API std::string sha256_of_file(const std::filesystem::path& path);
TENON_API std::string sha256_of(std::span<const std::byte> bytes);

/// The digest of a file as it is now, reckoned when it is first asked for: a plugin of 80 MB is not read by those who
/// do not ask. The file stays open meanwhile, so that another one under its name changes nothing.
class TENON_API FileDigest {
 public:
  /// Throws Error when the file cannot be read.
  explicit FileDigest(std::filesystem::path path);
  /// 64 hexadecimal digits. Throws Error when the file cannot be read. Any thread may ask.
  [[nodiscard]] const std::string& text() const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  mutable std::unique_ptr<std::FILE, Close> file_;  ///< until it has been read
  mutable std::mutex mutex_;
  mutable std::string text_;
};

}  // namespace tenon
