// What a sweep and the processes that work on its cells elsewhere tell each other: files in a folder that all of them
// see. A worker is this program too, so it needs nothing but the folder's path.
//
//   cells.json      the command line of each cell               written by the sweep, before any worker starts
//   claimed-3       cell 3 is being worked on                   made by the first worker that gets to it
//   ended-3.json    how its process ended, and on which host    written when it has
//   stop            the sweep was interrupted                   running cells end after their step, no other begins
#pragma once

#include <tenon/cli/process/spawn.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

/// A cell as a command line of this program, without the program's name.
struct ListedCell {
  std::size_t index = 0;  ///< in the sweep
  std::vector<std::string> arguments;
};

/// How a cell's process ended.
struct CellEnd {
  Ending ending;
  std::string host;
};

class CellList {
 public:
  explicit CellList(std::filesystem::path folder) : folder_(std::move(folder)) {}
  const std::filesystem::path& folder() const { return folder_; }

  /// Begins anew with these cells: what an earlier list left is removed. Throws Error where it cannot be written.
  void write(const std::vector<ListedCell>& cells) const;
  /// Throws Error where there is none.
  std::vector<ListedCell> read() const;

  /// False where another worker has it.
  bool claim(std::size_t index) const;
  void write_end(std::size_t index, const CellEnd& end) const;
  /// Empty as long as it has not ended.
  std::optional<CellEnd> end_of(std::size_t index) const;

  void stop() const;
  bool is_stopped() const;

 private:
  std::filesystem::path file_of(const char* stem, std::size_t index, const char* suffix = "") const;

  std::filesystem::path folder_;
};

}  // namespace tenon::cli
