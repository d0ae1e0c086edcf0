// The names of a run's files, moved and removed together.
#include <tenon/cli/results/former_results.h>

#include <tenon/cli/results/recording_names.h>
#include <tenon/cli/results/run_manifest.h>
#include <tenon/core/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

/// A link that leads nowhere too.
bool has_entry(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

void move(const std::vector<std::string>& names, const fs::path& from, const fs::path& to) {
  for (const std::string& name : names) {
    std::error_code problem;
    fs::create_directories((to / name).parent_path(), problem);
    fs::rename(from / name, to / name, problem);
    if (problem)
      throw Error(fmt::format("the results in {} cannot be kept in {}: {}; choose another folder with --out",
                              from.string(), to.string(), problem.message()));
  }
}

}  // namespace

ResultFiles::ResultFiles(fs::path folder, const std::vector<std::string>& more)
    : folder_(std::move(folder)), more_(more) {}

/// The manifest last: while it is there, the folder is known for what it is.
std::vector<std::string> ResultFiles::present_in(const fs::path& folder) const {
  std::vector<std::string> wanted = {kSettingsFile, kStateFile, kReportFile, kCellsFolder, kResultFile};
  std::vector<std::string> recorded = recorded_files();
  recorded.insert(recorded.end(), more_.begin(), more_.end());
  std::ranges::copy(profile_files(folder), std::back_inserter(recorded));
  for (const std::string& name : recorded) {
    wanted.push_back(name);
    for (std::string& earlier : earlier_recordings(folder, name)) wanted.push_back(std::move(earlier));
  }
  wanted.emplace_back(kManifestFile);
  std::vector<std::string> present;
  for (const std::string& name : wanted) {
    const bool is_new = std::ranges::find(present, name) == present.end();
    if (is_new && has_entry(folder / name)) present.push_back(name);
  }
  return present;
}

bool ResultFiles::has_results() const {
  return std::ranges::any_of(present_in(folder_),
                             [](const std::string& name) { return name != kSettingsFile && name != kManifestFile; });
}

fs::path ResultFiles::keep() const {
  const std::vector<std::string> names = present_in(folder_);
  fs::path kept;
  for (int number = 1;; ++number) {
    kept = folder_ / fmt::format("previous-{}", number);
    // Without a manifest a process was killed while it moved the rest of these there.
    const bool is_free = !has_entry(kept / kManifestFile) &&
                         std::ranges::none_of(names, [&](const std::string& name) { return has_entry(kept / name); });
    if (is_free) break;
  }
  move(names, folder_, kept);
  return kept;
}

void ResultFiles::put_back(const fs::path& kept) const {
  move(present_in(kept), kept, folder_);
  std::error_code ignored;
  fs::remove(kept, ignored);
}

void ResultFiles::remove() const {
  std::error_code ignored;
  for (const std::string& name : present_in(folder_)) fs::remove_all(folder_ / name, ignored);
}

}  // namespace tenon::cli
