// Which allocators and settings would have served a history on a device of a given size.
#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/memory/pytorch/conf.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/replay/advise/pytorch_settings.h>
#include <tenon/replay/advise/would_fit.h>
#include <tenon/replay/jobs/process_pool.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/conf_policy.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace tenon::replay {

namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;
std::pair<std::string, Entries> identity(const StackConfig& policy) {
  return {policy.policy.name, policy.options.entries(true)};
}

Job job_of(const Trace& trace, const FitCandidate& candidate, std::uint64_t capacity_bytes) {
  Job job{.trace = &trace, .policy = &candidate.policy, .label = candidate.label};
  if (capacity_bytes != 0) job.options.capacity_bytes = capacity_bytes;
  job.options.timed_passes = 0;
  job.options.time_each_call = false;
  return job;
}

/// Segments come and go with the blocks, or pages do. One that takes a long block in several pieces and keeps them has
/// more calls than blocks at first, and none after that. The pages of a plan are mapped once: not asked for one.
bool is_slow(const ReplayRow& row) {
  const bool goes_with_the_blocks =
      row.device_allocations + row.device_frees > row.allocations && row.device_frees > row.frees / 2;
  return goes_with_the_blocks || row.device_calls() > row.allocations / 4 + 1000;
}

FitAttempt attempt_of(const FitCandidate& candidate, const ReplayRow& row) {
  const std::uint64_t calls = row.device_calls();
  return {.label = candidate.label,
          .policy = candidate.policy,
          .is_planned = candidate.is_planned,
          .ooms = row.ooms,
          .first_oom_event = row.first_oom_event,
          .peak_reserved_bytes = row.peak_reserved_bytes,
          .device_calls = calls,
          .is_slow = !candidate.is_planned && is_slow(row),
          .failure = row.failure,
          .failed_event = row.failed_event};
}

std::string quoted(const std::vector<const FitAttempt*>& attempts, bool with_peak) {
  std::vector<std::string> words;
  for (const FitAttempt* attempt : attempts) {
    const std::string calls = attempt->is_slow ? fmt::format(", {} device calls", attempt->device_calls) : "";
    words.push_back(with_peak ? fmt::format("'{}' ({} reserved{})", attempt->label,
                                            format_bytes(attempt->peak_reserved_bytes), calls)
                              : fmt::format("'{}'", attempt->label));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

std::string FitAttempt::complaint() const {
  if (failure.empty()) return {};
  return fmt::format("'{}' is disqualified: {}{}", label, failure,
                     failed_event ? fmt::format(" at event {}", *failed_event) : "");
}

const FitAttempt* FitReport::best() const {
  return is_reproduced() && !others.empty() && others.front().fits() ? &others.front() : nullptr;
}

const FitAttempt* FitReport::least() const {
  const FitAttempt* least = current.fits() ? &current : nullptr;
  for (const FitAttempt& attempt : others)
    if (attempt.fits() && (least == nullptr || attempt.peak_reserved_bytes < least->peak_reserved_bytes))
      least = &attempt;
  return least;
}

std::string FitReport::sentence() const {
  const std::string part = fmt::format("{} {}", lost_events == 0 ? "all" : "the last", counted(events, "event"));
  const std::string capacity = format_bytes(capacity_bytes);
  if (capacity_bytes != 0 && peak_requested_bytes > capacity_bytes) {
    // Rounded, the two may look the same.
    const bool is_close = format_bytes(peak_requested_bytes) == capacity;
    return fmt::format("no allocator could have served it: {} were live or asked for at once, on a device of {}",
                       is_close ? fmt::format("{} bytes", peak_requested_bytes) : format_bytes(peak_requested_bytes),
                       is_close ? fmt::format("{} bytes", capacity_bytes) : capacity);
  }
  if (!current.failure.empty()) return current.complaint();
  if (!is_reproduced()) {
    return fmt::format(
        "in a replay of {} on {}, '{}' itself does not run out ({} reserved): the cause lies outside the replay, such "
        "as "
        "another process, a layer or events before the recording",
        part, capacity, current.label, format_bytes(current.peak_reserved_bytes));
  }
  std::vector<const FitAttempt*> fit, unfit;
  for (const FitAttempt& attempt : others) (attempt.fits() ? fit : unfit).push_back(&attempt);
  if (others.empty()) return "no other allocator is loaded, so none was tried";
  if (fit.empty()) {
    return fmt::format("in a replay of {} on {}, none of {} would have fitted: {} were live at once", part, capacity,
                       quoted(unfit, false), format_bytes(peak_requested_bytes));
  }
  constexpr std::size_t kNamed = 3;
  const std::size_t count = fit.size();
  fit.resize(std::min(kNamed, count));
  return fmt::format("in a replay of {} on {}, {}{} would have fitted", part, capacity, quoted(fit, true),
                     count > kNamed ? fmt::format(" and {} more", count - kNamed) : "");
}

FitReport what_would_fit(const Trace& trace, const FitCandidate& current, const std::vector<FitCandidate>& candidates,
                         std::uint64_t capacity_bytes, const FitOptions& options) {
  std::set<std::pair<std::string, Entries>> known = {identity(current.policy)};
  std::vector<const FitCandidate*> chosen = {&current};
  const auto choose = [&](const std::vector<FitCandidate>& from) {
    for (const FitCandidate& candidate : from)
      if (known.insert(identity(candidate.policy)).second) chosen.push_back(&candidate);
    return chosen.size();
  };
  const std::size_t first_own = choose(candidates);
  choose(options.own);
  std::vector<Job> replays;
  for (const FitCandidate* candidate : chosen) replays.push_back(job_of(trace, *candidate, capacity_bytes));
  const std::vector<ReplayRow> rows = run_jobs(replays, options.jobs, {}, options.is_stopping);
  FitReport report{.capacity_bytes = capacity_bytes,
                   .events = trace.facts.events,
                   .peak_requested_bytes = trace.facts.peak_requested_bytes,
                   .current = attempt_of(current, rows.front())};
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].failure != kNotMeasured)
      (i < first_own ? report.others : report.own).push_back(attempt_of(*chosen[i], rows[i]));
  // Fewer options first where peaks are equal: the lists are in the order of the candidates already.
  for (std::vector<FitAttempt>* attempts : {&report.others, &report.own})
    std::ranges::stable_sort(*attempts, {}, [](const FitAttempt& attempt) {
      return std::tuple(!attempt.fits(), !attempt.failure.empty(), attempt.is_slow,
                        attempt.fits() ? attempt.peak_reserved_bytes : 0);
    });
  return report;
}

std::vector<FitCandidate> other_allocators(const StackConfig& current, std::uint64_t max_request_bytes) {
  std::vector<FitCandidate> candidates;
  for (const std::string& name : default_allocators()) {
    // Of the one in use only other settings may be suggested, never itself.
    candidates.push_back({name == current.policy.name ? name + " with its defaults" : name, allocator_from_spec(name)});
  }
  // The settings to try are those of PyTorch's default allocator.
  const StackConfig native = policy_of_conf("");
  StackConfig base = current.policy.traits.pytorch_conf == "" ? current : native;
  base.layers.clear();
  const auto add = [&](const std::string& option, const std::string& value) {
    StackConfig policy = base;
    try {
      policy.options.set_text(option, value);
    } catch (const Error&) {  // a version without that option
      return;
    }
    candidates.push_back({policy.policy.name + ":" + policy.options.spec(), std::move(policy)});
  };
  for (const std::string& setting : settings_to_try(max_request_bytes)) {
    // Expandable segments are among the allocators, and what suits them too is left to `tenon tune`.
    if (find_pytorch_setting(key_of(setting))->suits_expandable) continue;
    for (const auto& [option, value] : parse_pytorch_conf(setting).options) add(option, value);
  }
  return candidates;
}

std::vector<FitCandidate> other_pytorch_settings(const std::string& conf, std::uint64_t max_request_bytes) {
  std::vector<FitCandidate> candidates;
  const std::vector<std::string> decided = conf_settings(conf);  // keys may begin alike, and PyTorch passes over spaces
  const auto add = [&](const std::string& setting) {
    if (std::ranges::find(decided, key_of(setting), key_of) != decided.end())
      return;  // set already, to whatever value: the user has decided
    const std::string merged = conf.empty() ? setting : conf + "," + setting;
    try {
      FitCandidate candidate{merged, policy_of_conf(merged)};
      AddressOnlySource device;
      candidate.policy.policy.create({.source = device, .options = candidate.policy.options});
      candidates.push_back(std::move(candidate));
    } catch (const Error&) {  // PyTorch refuses the combination, or its driver does
    }
  };
  const bool is_expandable = std::ranges::find(decided, kExpandableSetting) != decided.end();
  for (const std::string& setting : settings_to_try(max_request_bytes))
    if (!is_expandable || find_pytorch_setting(key_of(setting))->suits_expandable) add(setting);
  return candidates;
}

std::optional<std::uint64_t> capacity_at_failure(const Trace& trace) {
  std::optional<std::uint64_t> capacity;
  for (const RecordedOom& oom : trace.ooms) {
    if (oom.capacity_bytes() != 0) capacity = std::max(capacity.value_or(0), oom.capacity_bytes());
  }
  return capacity;
}

}  // namespace tenon::replay
