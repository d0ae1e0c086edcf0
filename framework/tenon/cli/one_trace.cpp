// Names that tell files apart, the choice of a device by its recorded number, and one checked replay in a job.
#include <tenon/cli/command_files.h>
#include <tenon/cli/one_trace.h>

#include <tenon/core/error.h>
#include <tenon/core/text/utf8.h>
#include <tenon/replay/jobs/process_pool.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::cli {

namespace {

replay::Trace of_device(std::vector<replay::Trace> traces, const std::string& path, int device) {
  const auto chosen = std::ranges::find(traces, device, &replay::Trace::device);
  if (chosen != traces.end()) return std::move(*chosen);
  std::string known;
  for (const replay::Trace& trace : traces) known += fmt::format("{}{}", known.empty() ? "" : ", ", trace.device);
  throw ConfigError(device < 0
                        ? fmt::format("{} holds the histories of devices {}; choose one with --device", path, known)
                        : fmt::format("{} holds no history of device {}; it has: {}", path, device, known));
}

}  // namespace

void for_each_trace(const std::vector<std::string>& paths, const replay::ReadOptions& read,
                    const std::function<void(replay::Trace&)>& visit) {
  check_files({.read = paths, .written = {}});
  const auto base = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  for (const std::string& path : paths) {
    const bool is_ambiguous = std::ranges::any_of(
        paths, [&](const std::string& other) { return other != path && base(other) == base(path); });
    for (replay::Trace& trace : replay::read_traces(path, read)) {
      if (is_ambiguous) trace.name = printable(path.substr(0, path.size() - base(path).size())) + trace.name;
      visit(trace);
    }
  }
}

std::vector<replay::Trace> all_traces(const std::vector<std::string>& paths, const replay::ReadOptions& read) {
  std::vector<replay::Trace> traces;
  for_each_trace(paths, read, [&](replay::Trace& trace) { traces.push_back(std::move(trace)); });
  return traces;
}

replay::Trace one_trace(const std::string& path, int device, const replay::ReadOptions& read) {
  std::vector<replay::Trace> traces = replay::read_traces(path, read);
  if (device < 0 && traces.size() == 1) return std::move(traces.front());
  return of_device(std::move(traces), path, device);
}

replay::Trace single_or_chosen_trace(const std::string& path, int device) {
  std::vector<replay::Trace> traces = replay::read_traces(path);
  return traces.size() == 1 ? std::move(traces.front()) : of_device(std::move(traces), path, device);
}

void require_sound(const replay::Trace& trace, const StackConfig& policy, std::optional<std::uint64_t> capacity_bytes) {
  replay::Job job{.trace = &trace, .policy = &policy, .label = policy.policy.name};
  job.options.timed_passes = 0;
  job.options.time_each_call = false;
  job.options.capacity_bytes = capacity_bytes;
  const replay::ReplayRow row = std::move(replay::run_jobs({job}).front());
  if (row.failure.empty()) return;
  throw Error(row.failed_event ? fmt::format("{} at event {}: {}", job.label, *row.failed_event, row.failure)
                               : fmt::format("{}: {}", job.label, row.failure));
}

}  // namespace tenon::cli
