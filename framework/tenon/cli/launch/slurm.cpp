// Cells as a job array of Slurm: `sbatch --array`, followed with squeue. Declared in launcher.h.
#include <tenon/cli/launch/command.h>
#include <tenon/cli/launch/launcher.h>

#include <tenon/core/error.h>
#include <tenon/core/files/atomic_file.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <utility>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

/// For /bin/sh.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return result + "'";
}

class SlurmLauncher final : public Launcher {
 public:
  explicit SlurmLauncher(std::vector<std::string> words) : words_(std::move(words)) {}

  std::string start(const CellList& list, const std::vector<std::size_t>& cells, unsigned at_a_time) override {
    folder_ = list.folder();
    const std::string program = fs::read_symlink("/proc/self/exe").string();
    const fs::path script = folder_ / "job.sh";
    // exec: what Slurm signals is the worker, which asks its cell to end.
    write_atomically(script, fmt::format("#!/bin/sh\nexec {} run --work-in {} --work-on \"$SLURM_ARRAY_TASK_ID\"\n",
                                         quoted(program), quoted(folder_.string())));
    std::vector<std::string> command = {"sbatch", "--parsable", "--job-name=tenon-sweep",
                                        "--output=" + (folder_ / "cell-%a.log").string()};
    command.insert(command.end(), words_.begin(), words_.end());
    command.push_back(fmt::format("--array={}{}", fmt::join(cells, ","),
                                  at_a_time > 0 ? fmt::format("%{}", at_a_time) : std::string()));
    command.push_back(script.string());
    const CommandResult result = output_of(command);
    if (!result.is_good()) throw Error(fmt::format("sbatch refused the sweep: {}", trimmed(result.output)));
    // What sbatch has to say stands before it; behind a semicolon, the cluster.
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) job_ = line.substr(0, line.find(';'));
    if (job_.empty() || job_.find_first_not_of("0123456789") != std::string::npos)
      throw Error(fmt::format("sbatch gave no job number: {}", trimmed(result.output)));
    return "Slurm job " + job_;
  }

  std::vector<LostCell> lost(const std::vector<std::size_t>& open) override {
    const CommandResult queue = output_of({"squeue", "--noheader", "--array", "--jobs=" + job_, "--format=%K %T"});
    std::set<std::size_t> known;
    // An array whose tasks have all gone is no valid job any more.
    if (!queue.is_good() && queue.output.find("Invalid job id") == std::string::npos) return {};  // asked again later
    std::istringstream lines(queue.output);
    for (std::string line; queue.is_good() && std::getline(lines, line);) {
      std::istringstream words(line);
      std::size_t index = 0;
      std::string state;
      if (words >> index >> state && !has_ended(state)) known.insert(index);
    }
    std::vector<LostCell> gone;
    for (const std::size_t index : open) {
      if (!known.contains(index)) gone.push_back({index, "Slurm says " + state_of(index)});
    }
    return gone;
  }

  void stop() override { output_of({"scancel", "--state=PENDING", job_}); }

  std::string messages_of(std::size_t index) const override {
    return (folder_ / fmt::format("cell-{}.log", index)).string();
  }

 private:
  static std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }
  static bool has_ended(const std::string& state) {
    return state != "PENDING" && state != "RUNNING" && state != "CONFIGURING" && state != "COMPLETING" &&
           state != "SUSPENDED" && state != "REQUEUED" && state != "STOPPED" && state != "RESIZING";
  }
  /// "TIMEOUT", "CANCELLED", as long as the controller remembers it.
  std::string state_of(std::size_t index) const {
    const CommandResult job = output_of({"scontrol", "--oneliner", "show", "job", fmt::format("{}_{}", job_, index)});
    const std::size_t at = job.output.find("JobState=");
    if (!job.is_good() || at == std::string::npos) return "nothing of it any more";
    const std::size_t begin = at + std::string("JobState=").size();
    return job.output.substr(begin, job.output.find(' ', begin) - begin);
  }

  std::vector<std::string> words_;
  fs::path folder_;
  std::string job_;
};

}  // namespace

std::unique_ptr<Launcher> make_slurm_launcher(std::vector<std::string> words) {
  return std::make_unique<SlurmLauncher>(std::move(words));
}

}  // namespace tenon::cli
