// Looking through the folder of a missing file.
#include <tenon/core/files/nearest_file.h>

#include <tenon/core/options.h>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tenon {

namespace fs = std::filesystem;

std::string nearest_file_hint(const fs::path& path) {
  std::error_code problem;
  if (path.empty() || fs::exists(path, problem)) return {};
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, problem)) return fmt::format("; there is no folder {}", folder.string());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, problem))
    if (!entry.is_directory(problem)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  const std::string wanted = path.filename().string();
  const auto longer =
      std::ranges::find_if(names, [&](const std::string& name) { return name.starts_with(wanted + "."); });
  const std::string near = longer != names.end() ? *longer : nearest_name(wanted, names);
  return near.empty() ? "" : fmt::format("; did you mean {}?", (path.parent_path() / near).string());
}

}  // namespace tenon
