// Where the results of a command go.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tenon::cli {

/// A folder that one process writes to: locked for as long as this lives, by the kernel, so that a process that is
/// killed leaves no lock behind.
class OutputFolder {
 public:
  /// Makes DIR, or tenon-out/NAME-DATE-TIME when that is empty, and removes what dead processes left there
  /// half-written. Throws ConfigError when it cannot, or when another process has it for longer than
  /// `patience_seconds`.
  OutputFolder(const std::filesystem::path& wanted, const std::string& name, double patience_seconds = 0);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Makes and locks it again where somebody has removed it; whether that was so.
  bool restore();
  /// Removes the folders that this made, as far as they are empty.
  void remove_new();

 private:
  bool lock();
  void unlock();
  std::vector<std::filesystem::path> new_;  ///< that were not there before, the innermost last
  std::filesystem::path path_;
  int descriptor_ = -1;  ///< of the folder itself
};

/// Who has that folder as its OutputFolder at this moment: "process 4711". Empty: nobody, or the file system knows no
/// locks.
std::string writer_of(const std::filesystem::path& folder);

/// The text with what does not belong in a file's name replaced.
std::string plain_name(const std::string& text, char instead);

}  // namespace tenon::cli
