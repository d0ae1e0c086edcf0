// Working on cells.
#include <tenon/cli/launch/cell_worker.h>

#include <tenon/cli/launch/cell_list.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/process/own_process.h>
#include <tenon/core/process/child_process.h>
#include <tenon/core/process/host_name.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <thread>

namespace tenon::cli {

namespace {

constexpr std::chrono::milliseconds kBetweenTicks(100);

/// What says that we are one of several ranks is not true of our cells: each is a run of its own.
void forget_ranks() {
  constexpr std::array<std::string_view, 7> kPrefixes = {"OMPI_",         "PMIX_",        "PMI_",      "SLURM_PROCID",
                                                         "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_STEP"};
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    for (const std::string_view prefix : kPrefixes) {
      // What allows Open MPI to start at all is the user's.
      if (text.starts_with(prefix) && !text.starts_with("OMPI_ALLOW") && !text.starts_with("OMPI_MCA"))
        names.emplace_back(text.substr(0, text.find('=')));
    }
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

/// Runs the cell and waits for its end; where the sweep is stopped meanwhile the cell is asked to end.
Ending run_cell(const CellList& list, const ListedCell& cell) {
  std::vector<std::string> words = cell.arguments;
  words.insert(words.end(), {"--parent", std::to_string(::getpid())});
  const pid_t process = start_again(words, {"TERM=dumb"});
  const ForwardedInterrupts interrupts(process);
  bool is_told = false;
  while (!has_ended(process)) {
    if (!is_told && list.is_stopped()) {
      ::kill(process, SIGTERM);
      is_told = true;
    }
    std::this_thread::sleep_for(kBetweenTicks);
  }
  return ending_of(wait_for_end(process));
}

}  // namespace

ExitCode work_on_cells(const std::filesystem::path& folder, std::optional<std::size_t> index) {
  catch_interrupts("");
  const CellList list(folder);
  const std::string host = host_name();
  forget_ranks();
  for (const ListedCell& cell : list.read()) {
    if (index && cell.index != *index) continue;
    if (list.is_stopped() || interrupt_signal() != 0) break;
    if (!list.claim(cell.index)) continue;
    list.write_end(cell.index, {run_cell(list, cell), host});
  }
  return ExitCode::kDone;
}

}  // namespace tenon::cli
