// Words for the ways in which a run ends.
#include <tenon/runtime/run_status.h>

#include <algorithm>
#include <utility>

namespace tenon {

namespace {

using enum RunStatus;
constexpr std::pair<RunStatus, std::string_view> kWords[] = {
    {kNotRun, "not run"},          {kDone, "done"},       {kDisqualified, "disqualified"},
    {kFailed, "failed"},           {kCrashed, "crashed"}, {kOutOfMemory, "out_of_memory"},
    {kInterrupted, "interrupted"}, {kHung, "hung"},       {kKilled, "killed"},
};

}  // namespace

std::string_view to_string(RunStatus status) {
  return std::ranges::find(kWords, status, &std::pair<RunStatus, std::string_view>::first)->second;
}

std::optional<RunStatus> parse_run_status(std::string_view word) {
  const auto found = std::ranges::find(kWords, word, &std::pair<RunStatus, std::string_view>::second);
  return found == std::end(kWords) ? std::nullopt : std::optional(found->first);
}

bool is_finished(RunStatus status) { return status == kDone || status == kDisqualified || status == kOutOfMemory; }

}  // namespace tenon
