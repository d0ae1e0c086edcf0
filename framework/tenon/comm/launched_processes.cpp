// Which ranks of a launch have a process here: every process shows the environment that it was started with. Declared
// in lobby.h.
#include <tenon/comm/lobby.h>

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace tenon {
namespace {

/// How programs begin that start ranks.
constexpr std::string_view kLauncherNames[] = {"mpirun", "mpiexec", "orte",     "prte",       "prun",
                                               "srun",   "slurm",   "torchrun", "pt_elastic", "python"};

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The rank that a process is in the launch of `own`; -1: in none. Where it has ended there is no environment.
int rank_of(int process, const RankEnvironment& own) {
  const std::string variables = '\0' + read_whole(fmt::format("/proc/{}/environ", process));
  const auto value = [&](const char* name) -> const char* {
    const std::string beginning = fmt::format("{}{}=", '\0', name);
    const std::size_t at = variables.find(beginning);
    return at == std::string::npos ? nullptr : variables.c_str() + at + beginning.size();
  };
  try {
    const RankEnvironment found = rank_environment(value);
    return found.launch == own.launch && found.size == own.size ? found.rank : -1;
  } catch (const ConfigError&) {  // somebody else's, of another kind
    return -1;
  }
}

int parent_of(int process) {
  const std::string line = read_whole(fmt::format("/proc/{}/stat", process));
  const std::size_t after_name = line.rfind(')');
  if (after_name == std::string::npos || after_name + 4 >= line.size()) return 0;
  int parent = 0;
  std::from_chars(line.data() + after_name + 4, line.data() + line.size(), parent);
  return parent;
}

/// Whether what started this process is seen: then so is all else that it started.
bool sees_launcher(const RankEnvironment& own) {
  int process = static_cast<int>(::getpid());
  while (process > 0 && rank_of(process, own) >= 0) process = parent_of(process);
  if (process <= 0) return false;
  const std::string name = read_whole(fmt::format("/proc/{}/comm", process));
  return std::ranges::any_of(kLauncherNames, [&](std::string_view one) { return name.starts_with(one); });
}

}  // namespace

std::set<int> ranks_with_a_process(const RankEnvironment& own) {
  std::set<int> ranks;
  if (own.launch.empty() || !sees_launcher(own)) return ranks;
  std::error_code ignored;
  for (std::filesystem::directory_iterator one("/proc", ignored), end; !ignored && one != end; one.increment(ignored)) {
    const std::string name = one->path().filename().string();
    int process = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), process).ptr != name.data() + name.size()) continue;
    if (const int rank = rank_of(process, own); rank >= 0) ranks.insert(rank);
  }
  if (!ranks.contains(own.rank)) ranks.clear();  // the environment was changed after the start: others' may be too
  return ranks;
}

}  // namespace tenon
