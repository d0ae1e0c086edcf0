// Launchers by name.
#include <tenon/cli/launch/launcher.h>

#include <tenon/core/error.h>
#include <tenon/core/options.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace tenon::cli {

namespace {

struct LauncherRow {
  std::string_view name;
  std::unique_ptr<Launcher> (*make)(std::vector<std::string> words);
};
constexpr LauncherRow kLaunchers[] = {{"slurm", &make_slurm_launcher}, {"mpi", &make_mpi_launcher}};

}  // namespace

std::vector<std::string> launcher_names() {
  std::vector<std::string> names;
  for (const LauncherRow& row : kLaunchers) names.emplace_back(row.name);
  return names;
}

std::string problem_of_launcher(const std::string& word) {
  const std::vector<std::string> names = launcher_names();
  if (std::ranges::find(names, word) != names.end()) return {};
  const std::string near = nearest_name(word, names);
  return fmt::format("unknown launcher '{}'; {}", word,
                     near.empty() ? fmt::format("known: {}", fmt::join(names, ", ")) : "did you mean " + near + "?");
}

std::unique_ptr<Launcher> make_launcher(const std::string& name, std::vector<std::string> words) {
  const auto found = std::ranges::find(kLaunchers, name, &LauncherRow::name);
  TENON_ASSERT(found != std::end(kLaunchers), "a name that the option allows");
  return found->make(std::move(words));
}

}  // namespace tenon::cli
