// The sentences, each with its next step.
#include <tenon/report/run/run_messages.h>

#include <tenon/core/text/counted.h>
#include <tenon/report/text/command_line.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tenon {

namespace {

/// "a", "a and b", "a, b and c".
std::string enumerated(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} and {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

/// "plugin a.so has changed".
std::string changed(const std::vector<std::string>& plugins) {
  return fmt::format("plugin{} {} {} changed", plugins.size() == 1 ? "" : "s", enumerated(plugins),
                     plugins.size() == 1 ? "has" : "have");
}

}  // namespace

std::string resume_command(const std::filesystem::path& folder, unsigned jobs) {
  return "tenon run --resume " + shell_word(folder.string()) + (jobs > 1 ? fmt::format(" -j {}", jobs) : "");
}

std::string kept_message(const std::filesystem::path& folder, const std::filesystem::path& kept) {
  return fmt::format("tenon: the results that were in {} are kept in {}", folder.string(), kept.string());
}

std::string begins_again_message(const std::vector<std::string>& plugins, const std::filesystem::path& kept) {
  return fmt::format("tenon: {} since this run began: it runs again from the beginning{}", changed(plugins),
                     kept.empty() ? "" : "; what there was of it is kept in " + kept.string());
}

std::string cells_again_message(const std::vector<std::string>& plugins, const std::vector<std::size_t>& cells,
                                const std::filesystem::path& kept) {
  std::vector<std::string> numbers;
  for (const std::size_t cell : cells) numbers.push_back(std::to_string(cell + 1));
  const bool is_one = cells.size() == 1;
  return fmt::format("tenon: {} since: cell{} again; {}", changed(plugins),
                     is_one ? fmt::format(" {} runs", numbers.front()) : fmt::format("s {} run", enumerated(numbers)),
                     is_one ? fmt::format("what it had is kept in {}", kept.string())
                            : fmt::format("what each had is kept in its folder, as in {}", kept.string()));
}

std::string other_build_message(const std::string& then, const std::string& now, const std::string& of) {
  const std::string which = then == now ? "" : fmt::format(" ({}, now {})", then, now);
  return fmt::format("tenon: Tenon itself was built anew since{}: {}", which, of);
}

std::string interruption(const std::string& signal, const ExperimentResult& result) {
  return fmt::format("{} after step {} of {}", signal, result.steps, result.planned_steps);
}

std::string interrupted_message(const std::string& interruption, const ExperimentResult& result,
                                const std::string& command) {
  std::string ended = "tenon: ended by " + interruption;
  if (!result.state_problem.empty() && result.kept_step == 0)
    return ended + "; its state could not be kept: " + result.state_problem;
  if (command.empty()) return ended;
  const std::string from = result.kept_step == result.steps ? "" : fmt::format(" (from step {})", result.kept_step);
  return fmt::format("{}; go on{} with\n  {}", ended, from, command);
}

std::string how_to_write_again(const std::string& command, bool stands_below_commands) {
  if (command.empty()) return {};
  return (stands_below_commands ? "\nand write the results with\n  "
                                : "; once there is room, write the results with\n  ") +
         command;
}

std::string go_on_message(const std::string& command) {
  return "once what was wrong is mended, go on from the last saved state with\n  " + command;
}

std::string once_mended_message(const std::string& command) {
  return "tenon: once the plugin is mended, run it again with\n  " + command;
}

std::string one_at_a_time_message(unsigned jobs, unsigned threads, unsigned cores) {
  const std::string beginning = fmt::format("tenon: -j {}: one cell at a time", jobs);
  if (cores == 1) return beginning + ", since this process may use 1 core";
  const unsigned cells = std::min(jobs, cores);
  return fmt::format(
      "{}, since each uses {} and this process may use {}; with train.threads={} {} run at a time, and losses may "
      "differ in their last bits",
      beginning, counted(threads, "thread"), counted(cores, "core"), cores / cells, cells);
}

std::string sweep_ended_message(const SweepEnding& ending) {
  const bool is_whole = ending.signal.empty() && ending.finished == ending.cells && !ending.is_unwritten;
  if (is_whole && ending.disqualified == 0) return {};
  const std::string why = ending.signal.empty() ? "" : "ended by " + ending.signal + ", ";
  std::string text = fmt::format("tenon: {}{} of {} {} finished", why, ending.finished, counted(ending.cells, "cell"),
                                 ending.cells == 1 ? "is" : "are");
  if (ending.disqualified != 0) text += fmt::format(", {} of them disqualified", ending.disqualified);
  if (ending.command.empty()) return text;
  const char* const next = ending.signal.empty() ? "once what was wrong is mended, go on with" : "go on with";
  return fmt::format("{}; {}\n  {}", text, next, ending.command);
}

std::string restored_message(const std::filesystem::path& folder, std::size_t cells) {
  return fmt::format("tenon: {} was removed while the sweep ran; the results of {} are written again", folder.string(),
                     counted(cells, "finished cell"));
}

std::string lost_message(const std::filesystem::path& folder, std::size_t cells, const std::string& command) {
  return fmt::format(
      "tenon: {} was removed while the sweep ran, with the recordings of {}; run what is missing again with\n  {}",
      folder.string(), counted(cells, "finished cell"), command);
}

}  // namespace tenon
