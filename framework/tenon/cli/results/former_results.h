// Results that stand in a folder when a run begins there: they are kept in a folder below it, and never overwritten.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tenon::cli {

/// The files of a run or a sweep in its folder: those of every run, what it recorded, and `more`.
class ResultFiles {
 public:
  ResultFiles(std::filesystem::path folder, const std::vector<std::string>& more);

  /// Whether there is anything besides what a run writes when it begins.
  bool has_results() const;
  /// Moves them to FOLDER/previous-1, or the next number that is free, and returns that folder. A process that is
  /// killed in the middle leaves every file in one of the two places. Throws Error that names both when it cannot.
  std::filesystem::path keep() const;
  /// Moves what keep() moved there back.
  void put_back(const std::filesystem::path& kept) const;
  /// Removes them; what cannot be removed stays.
  void remove() const;

 private:
  std::vector<std::string> present_in(const std::filesystem::path& folder) const;

  std::filesystem::path folder_;
  std::vector<std::string> more_;
};

}  // namespace tenon::cli
