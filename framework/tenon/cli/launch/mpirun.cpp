// Cells on the slots that mpirun has: a worker on each, which takes one cell after the other. Declared in launcher.h.
#include <tenon/cli/launch/command.h>
#include <tenon/cli/launch/launcher.h>
#include <tenon/cli/process/interrupt.h>

#include <tenon/core/error.h>
#include <tenon/core/process/child_process.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

class MpiLauncher final : public Launcher {
 public:
  explicit MpiLauncher(std::vector<std::string> words) : words_(std::move(words)) {}
  ~MpiLauncher() override {
    if (process_ == 0) return;
    ::kill(-process_, SIGTERM);
    wait_for_end(process_);
  }

  std::string start(const CellList& list, const std::vector<std::size_t>& cells, unsigned at_a_time) override {
    std::vector<std::string> command = {"mpirun"};
    if (at_a_time > 0)
      command.insert(command.end(), {"-n", std::to_string(std::min<std::size_t>(at_a_time, cells.size()))});
    command.insert(command.end(), words_.begin(), words_.end());
    command.insert(command.end(),
                   {fs::read_symlink("/proc/self/exe").string(), "run", "--work-in", list.folder().string()});
    process_ = start_command(command);
    return "mpirun";
  }

  std::vector<LostCell> lost(const std::vector<std::size_t>& open) override {
    if (process_ != 0 && has_ended(process_)) {
      const Ending ending = ending_of(wait_for_end(process_));
      process_ = 0;
      why_ = ending.signal != 0 ? "mpirun was ended by " + signal_name(ending.signal)
                                : fmt::format("mpirun ended with code {} before it", ending.exit_code);
    }
    std::vector<LostCell> gone;
    if (process_ == 0)
      for (const std::size_t index : open) gone.push_back({index, why_});
    return gone;
  }

  void stop() override {}  // workers look for it themselves
  std::string messages_of(std::size_t) const override { return {}; }

 private:
  std::vector<std::string> words_;
  pid_t process_ = 0;
  std::string why_;
};

}  // namespace

std::unique_ptr<Launcher> make_mpi_launcher(std::vector<std::string> words) {
  return std::make_unique<MpiLauncher>(std::move(words));
}

}  // namespace tenon::cli
