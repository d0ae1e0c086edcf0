// Engines that run the cells of a sweep on other machines: Slurm, mpirun. An engine starts workers (cell_worker.h); how
// cells end is read from their list, so that an engine has to say only which cells will not run any more.
#pragma once

#include <tenon/cli/launch/cell_list.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace tenon::cli {

/// A cell whose worker is gone.
struct LostCell {
  std::size_t index = 0;
  std::string why;  ///< "Slurm says TIMEOUT"
};

class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher() = default;

  /// Starts workers for the cells of the list, `at_a_time` of them at most (0: as many as the engine has room for).
  /// Throws Error where the engine refuses. Returns what there is to look at: "Slurm job 17".
  virtual std::string start(const CellList& list, const std::vector<std::size_t>& cells, unsigned at_a_time) = 0;
  /// Which of these cells neither run nor wait for a worker.
  virtual std::vector<LostCell> lost(const std::vector<std::size_t>& open) = 0;
  /// What waits is not begun any more.
  virtual void stop() = 0;
  /// Where the messages of a cell are; empty: on our standard error.
  virtual std::string messages_of(std::size_t index) const = 0;
};

/// "slurm", "mpi".
std::vector<std::string> launcher_names();

/// What is wrong with a word that stands for one of them, with the nearest one that there is; empty: nothing.
std::string problem_of_launcher(const std::string& word);

/// One of them; `words` are handed to sbatch or mpirun as they are.
std::unique_ptr<Launcher> make_launcher(const std::string& name, std::vector<std::string> words);

std::unique_ptr<Launcher> make_slurm_launcher(std::vector<std::string> words);
std::unique_ptr<Launcher> make_mpi_launcher(std::vector<std::string> words);

}  // namespace tenon::cli
