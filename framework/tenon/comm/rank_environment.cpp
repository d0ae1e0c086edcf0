// Variables of torchrun, Open MPI and Slurm.
#include <tenon/comm/rank_environment.h>

#include <tenon/core/error.h>

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>

namespace tenon {
namespace {

struct Launcher {
  std::string_view name;
  const char *rank, *size, *local_rank, *local_size;
  const char* needs;                ///< another one that has to be set; null: none
  const char *launch, *launch_too;  ///< both together name it
};

// torchrun's first: who exports them by hand in a script under another launcher means them.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nullptr, "TORCHELASTIC_RUN_ID", "MASTER_PORT"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, "PMIX_NAMESPACE", nullptr},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, "SLURM_STEP_ID", "SLURM_JOB_ID",
     "SLURM_STEP_ID"}};

std::optional<int> number(const EnvironmentReader& read, const char* name) {
  const char* text = name == nullptr ? nullptr : read(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::string_view word = text;
  int value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem != std::errc() || end != word.data() + word.size() || value < 0)
    throw ConfigError(fmt::format("the environment variable {} is \"{}\": it must be a number from 0", name, word));
  return value;
}

}  // namespace

RankEnvironment rank_environment(const EnvironmentReader& read) {
  RankEnvironment found;
  if (const char* address = read("MASTER_ADDR")) found.master_address = address;
  found.master_port = number(read, "MASTER_PORT").value_or(0);
  // There torchrun's agent listens itself.
  const char* const agent = read("TORCHELASTIC_USE_AGENT_STORE");
  if (agent != nullptr && std::string_view(agent) == "True" && found.master_port > 0) ++found.master_port;
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.needs != nullptr && read(launcher.needs) == nullptr) continue;
    const auto rank = number(read, launcher.rank), size = number(read, launcher.size);
    if (!rank && !size) continue;
    if (!rank || !size)
      throw ConfigError(fmt::format("the environment variable {} is set and {} is not: set both, or neither",
                                    rank ? launcher.rank : launcher.size, rank ? launcher.size : launcher.rank));
    if (*rank >= *size)
      throw ConfigError(fmt::format("{}={} is none of {}={} ranks: they are counted from 0", launcher.rank, *rank,
                                    launcher.size, *size));
    found.launcher = launcher.name;
    found.rank = *rank;
    found.size = *size;
    found.local_rank = number(read, launcher.local_rank).value_or(0);
    found.local_size = number(read, launcher.local_size).value_or(1);
    for (const char* part : {launcher.launch, launcher.launch_too})
      if (const char* const name = part == nullptr ? nullptr : read(part)) found.launch += fmt::format(".{}", name);
    return found;
  }
  return found;
}

RankEnvironment rank_environment() {
  return rank_environment([](const char* name) { return std::getenv(name); });
}

std::string relaunched(const RankEnvironment& ranks, const std::string& command) {
  if (ranks.size == 1) return command;
  if (ranks.launcher == "Open MPI") return fmt::format("mpirun -n {} {}", ranks.size, command);
  if (ranks.launcher == "Slurm") return fmt::format("srun -n {} {}", ranks.size, command);
  // One on each machine starts the ranks there.
  return fmt::format("torchrun --no-python --nproc-per-node {} {}", ranks.local_size, command);
}

}  // namespace tenon
