// What speaks against an answer: a poor history, a file that contradicts itself, a replay that is far from the
// recording.
#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/replay/results/trust.h>
#include <tenon/runtime/conf_policy.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::replay {

namespace {

constexpr double kCaveat = 0.03;         // of the recorded peak
constexpr double kFar = 1.5;             // times the recorded peak, or its inverse
constexpr double kMostUnrecorded = 0.2;  // of the recorded peak, lacking in a replay from nothing
constexpr double kLeastFreed = 0.05;     // of what was allocated
constexpr double kMostLive = 1.05;       // live bytes over reserved bytes: snapshots round what they saw last

constexpr char kHowToRecord[] =
    "Record the whole run from before the model is built, for a few steps:\n"
    "  import torch\n"
    "  torch.cuda.memory._record_memory_history(max_entries=1_000_000)\n"
    "  ...  # build the model, run three to five training steps\n"
    "  torch.cuda.memory._dump_snapshot(\"memory.pickle\")\n"
    "  torch.cuda.memory._record_memory_history(enabled=None)\n";

std::string why_history_is_too_poor(const Trace& trace) {
  const TraceFacts& facts = trace.facts;
  // Each is an allocation and a free, which beside a state are not a history yet.
  const std::uint64_t failed = facts.seeded_blocks == 0 ? 0 : trace.ooms.size();
  const std::uint64_t recorded = facts.allocations - std::min(facts.allocations, facts.seeded_blocks + failed);
  const double peak = static_cast<double>(std::max<std::uint64_t>(1, facts.peak_requested_bytes));
  const std::uint64_t freed = facts.total_requested_bytes - facts.end_live_bytes;
  std::string why;
  if (facts.allocations == 0) {
    why = "it holds no allocation";
  } else if (recorded != 0 && facts.frees == failed) {
    why = fmt::format(
        "it holds {} and no free: nothing is ever handed out a second time, and how that is done is what "
        "settings change",
        counted(recorded, "allocation"));
  } else if (recorded == 0 || facts.frees == failed) {
    why = fmt::format("it shows what lived at one moment ({}) and no history: nothing can be said of fragmentation",
                      counted(facts.allocations, "block"));
  } else if (static_cast<double>(facts.unplaced_bytes) > 0.3 * peak) {
    why = fmt::format(
        "{} of its peak of {} ({:.0f} %) lived before the recording, known only as a sum: how these blocks lie decides "
        "the outcome",
        format_bytes(facts.unplaced_bytes), format_bytes(facts.peak_requested_bytes),
        100 * static_cast<double>(facts.unplaced_bytes) / peak);
  } else if (static_cast<double>(facts.total_requested_bytes - facts.seeded_bytes) < 0.2 * peak) {
    why = fmt::format(
        "only {} were allocated while it was recorded, against {} that were there before: the ring buffer lost the "
        "beginning, or it was too short",
        format_bytes(facts.total_requested_bytes - facts.seeded_bytes), format_bytes(facts.seeded_bytes));
  } else if (static_cast<double>(freed) < kLeastFreed * static_cast<double>(facts.total_requested_bytes)) {
    why = fmt::format(
        "of {} that were allocated {} are freed: next to nothing is ever handed out a second time, and how "
        "that is done is what settings change",
        format_bytes(facts.total_requested_bytes), format_bytes(freed));
  }
  return why;
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(a) / static_cast<double>(std::max<std::uint64_t>(1, b));
}

std::string refusal(const Trace& trace, const std::string& why) {
  return fmt::format("{}: no setting is recommended from this file: {}.\n{}", trace.name, why, kHowToRecord);
}

Fidelity fidelity_of(const Trace& trace, const std::string& conf) {
  try {
    return measure_fidelity(trace, policy_of_conf(conf), conf);
  } catch (const ConfigError& error) {
    Fidelity fidelity;
    fidelity.why_unknown = std::string("the recorded settings are not understood: ") + error.what();
    return fidelity;
  }
}

/// More is live at once than was ever reserved; what a failed request asked for may be among it.
std::string why_contradictory(const Trace& trace) {
  if (!trace.recorded || trace.recorded->peak_reserved_bytes == 0) return {};
  std::uint64_t room = trace.recorded->peak_reserved_bytes;
  for (const RecordedOom& oom : trace.ooms) room = std::max(room, trace.recorded->peak_reserved_bytes + oom.bytes);
  if (ratio(trace.facts.peak_requested_bytes, room) <= kMostLive) return {};
  return fmt::format("it contradicts itself: {} live at once according to its history, {} reserved at most",
                     format_bytes(trace.facts.peak_requested_bytes), format_bytes(trace.recorded->peak_reserved_bytes));
}

/// Whether the end of the history is missing, as in a binary trace whose program was killed.
bool was_cut(const Trace& trace) {
  return std::ranges::any_of(trace.notes,
                             [](const std::string& note) { return note.starts_with("the recording was cut"); });
}

/// The replay of the recorded settings against the recording. On a device that ran out, one without limit takes more.
void judge_fidelity(const Trace& trace, Trust& trust, std::string& why) {
  const Fidelity& fidelity = trust.fidelity;
  // Without its device calls a recording still has a peak; what it began with is judge_cold_start's business then.
  if (!fidelity.is_known && (fidelity.replayed_peak_bytes == 0 || trust.reserved_at_start_bytes != 0)) return;
  const double factor = ratio(fidelity.replayed_peak_bytes, fidelity.recorded_peak_bytes);
  const bool was_limited = !trace.ooms.empty();
  const std::string figures = fmt::format(
      "replayed under {}, it reserves {} instead of {} ({:+.1f} %)",
      trace.recorded->has_settings || !fidelity.settings.empty() ? "the settings that it was recorded with"
                                                                 : "PyTorch's defaults (it does not say its own)",
      format_bytes(fidelity.replayed_peak_bytes), format_bytes(fidelity.recorded_peak_bytes), 100 * (factor - 1));
  if (factor < 1 / kFar || (factor > kFar && !was_limited)) {
    why = figures + (was_cut(trace) ? ": the recording was cut, and what was reserved after that is not in it"
                                    : ": the history is not what happened on this device");
  } else if (fidelity.reproduces_nothing()) {
    why = fmt::format(
        "the replay reproduces next to nothing of what was recorded: {} of {} device calls. Under which settings was "
        "it "
        "recorded? (--pytorch-conf says so)",
        fidelity.common_actions, fidelity.recorded_actions);
  } else if (fidelity.peak_error() > kCaveat) {
    trust.caveats.push_back(figures + ": no figure here is more exact than that");
  }
}

/// The rows of a comparison start with an empty device. What the recorded one had cached by then is lost to them.
void judge_cold_start(const Trace& trace, const std::string& conf, Trust& trust, std::string& why) {
  if (trust.reserved_at_start_bytes == 0 || trace.recorded->peak_reserved_bytes == 0) return;
  JobOptions options;
  options.timed_passes = 0;
  options.time_each_call = options.check_placement = false;
  const ReplayRow row = run_job(trace, policy_of_conf(conf), options);
  if (!row.failure.empty()) return;  // fidelity says so already
  const std::uint64_t recorded = trace.recorded->peak_reserved_bytes;
  const double lacking = 1 - ratio(row.peak_reserved_bytes, recorded);
  const std::string start = format_bytes(trust.reserved_at_start_bytes);
  if (lacking > kMostUnrecorded) {
    why = fmt::format(
        "{} were reserved already when the recording began. From an empty device, as every setting is tried, its own "
        "settings reserve {} instead of {}: {:.0f} % of what was reserved comes from before the recording",
        start, format_bytes(row.peak_reserved_bytes), format_bytes(recorded), 100 * lacking);
    return;
  }
  trust.caveats.push_back(fmt::format(
      "every row starts with an empty device, the recording with {} reserved; its own settings reserve {} from there, "
      "against {} recorded",
      start, format_bytes(row.peak_reserved_bytes), format_bytes(recorded)));
}

std::string why_without_replay(const Trace& trace) {
  if (!trace.distrust.empty()) return "it is a part of a recording of which this has to be said: " + trace.distrust;
  const std::string why = why_history_is_too_poor(trace);
  return why.empty() ? why_contradictory(trace) : why;
}

}  // namespace

Trust judge(const Trace& trace, const std::optional<std::string>& conf) {
  Trust trust;
  if (trace.recorded) trust.reserved_at_start_bytes = trace.recorded->reserved_at_start_bytes;
  const std::string settings = conf ? *conf : trace.recorded ? trace.recorded->pytorch_conf : std::string();
  trust.why_refused = why_without_replay(trace);
  trust.fidelity = fidelity_of(trace, settings);
  if (trust.why_refused.empty()) judge_fidelity(trace, trust, trust.why_refused);
  if (trust.why_refused.empty()) judge_cold_start(trace, valid_part(settings), trust, trust.why_refused);
  if (!trust.why_refused.empty()) trust.refusal = refusal(trace, trust.why_refused);
  return trust;
}

}  // namespace tenon::replay
