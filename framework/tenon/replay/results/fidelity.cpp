// Fidelity of a replay.
#include <tenon/memory/pytorch/sizes.h>
#include <tenon/replay/engine/recorded_addresses.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/replay/formats/format.h>
#include <tenon/replay/results/fidelity.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <tuple>
#include <vector>

namespace tenon::replay {

namespace {

/// Whether files of its form say what was reserved.
bool tells_reserved(const Trace& trace) {
  const Format* const format = find_format(trace.format);
  return format != nullptr && format->shows_segments;
}

/// Small segments have one size; a file may say anything.
constexpr std::uint64_t kMaxSmallSegment = 32 * pytorch::kSmallSegmentBytes;

std::uint64_t end_of(const SegmentInfo& segment) {
  return segment.address + std::min<std::uint64_t>(segment.bytes, ~std::uint64_t{0} - segment.address);
}

/// Puts one segment back: blocks at their places, the rest cached.
class SegmentBuilder {
 public:
  SegmentBuilder(TraceBuilder& builder, const SegmentInfo& segment, std::vector<std::uint32_t>& gaps)
      : builder_(builder), segment_(segment), next_(segment.address), gaps_(gaps) {}

  void begin() {
    if (!segment_.is_large) return;  // the first small request takes a whole small segment
    builder_.free(builder_.allocate(segment_.bytes, segment_.stream.id));
  }
  /// A block that lives at `address` and reaches to `end`, including what was not worth splitting off.
  std::uint32_t block(std::uint64_t address, std::uint64_t end) {
    gap(address);
    next_ = end;
    return builder_.allocate(end - address, segment_.stream.id);
  }
  void end() { gap(end_of(segment_)); }

 private:
  // Small blocks are at most a mebibyte; a large gap is one free block.
  void gap(std::uint64_t until) {
    while (next_ < until) {
      const bool is_one = segment_.is_large || segment_.bytes > kMaxSmallSegment;
      const std::uint64_t bytes =
          is_one ? until - next_ : std::min<std::uint64_t>(until - next_, pytorch::kSmallLimitBytes);
      gaps_.push_back(builder_.allocate(bytes, segment_.stream.id));
      next_ += bytes;
    }
  }

  TraceBuilder& builder_;
  const SegmentInfo& segment_;
  std::uint64_t next_;
  std::vector<std::uint32_t>& gaps_;  ///< freed once every segment stands, or the next one would use them
};

}  // namespace

double Fidelity::peak_error() const {
  if (recorded_peak_bytes == 0) return 0;
  return std::abs(static_cast<double>(replayed_peak_bytes) / static_cast<double>(recorded_peak_bytes) - 1);
}

bool Fidelity::reproduces_nothing() const {
  constexpr std::uint64_t kFewCalls = 10;  // of these a share says nothing
  constexpr std::uint64_t kLeastShare = 10;
  return is_known && !is_exact && recorded_actions >= kFewCalls && common_actions < recorded_actions / kLeastShare;
}

std::string Fidelity::sentence() const {
  if (!is_known) return "fidelity unknown: " + why_unknown;
  const std::string recorded_with =
      is_stated ? "which the file was recorded with" : "for the file does not say what it was recorded with";
  const std::string device =
      capacity_bytes ? fmt::format(" (on a device of {}, the recorded peak)", format_bytes(*capacity_bytes)) : "";
  const std::string conf = (settings.empty() ? "PyTorch's default settings" : "'" + settings + "'") +
                           (ties_by_address ? " of a version before May 2026" : "") + device;
  if (is_exact) {
    const std::string calls = recorded_actions == 0 ? "no device call, as the recording,"
                              : recorded_actions == 1
                                  ? "the same device call at the same event"
                                  : fmt::format("the same {} device calls at the same events", recorded_actions);
    return fmt::format("fidelity: exact. Under {}, {}, the replay makes {} and ends with the same {} reserved", conf,
                       recorded_with, calls, format_bytes(recorded_reserved_bytes));
  }
  return fmt::format(
      "fidelity: under {}, {}, {} of {} recorded device calls are reproduced in order; peak reserved {} against {} "
      "recorded ({:+.2f} %), at the end {} against {}",
      conf, recorded_with, matching_actions, recorded_actions, format_bytes(replayed_peak_bytes),
      format_bytes(recorded_peak_bytes),
      100 * (static_cast<double>(replayed_peak_bytes) / static_cast<double>(recorded_peak_bytes) - 1),
      format_bytes(replayed_reserved_bytes), format_bytes(recorded_reserved_bytes));
}

/// The trace with the cached segments of its start put back: each is taken, cut into the blocks that lived in it, and
/// its gaps are freed again. `prefix_events` receives by how much the counted events move.
static Trace warm_trace(const Trace& trace, std::int64_t& prefix_events) {
  TraceBuilder builder(trace.path);
  const RecordedAllocator& recorded = *trace.recorded;
  const std::uint64_t seeds = trace.facts.seeded_blocks;
  std::vector<std::uint32_t> slot_of(trace.slot_count, 0);

  // Seeds by address; those outside any ordinary segment (expandable ones) simply are allocated.
  std::vector<std::uint64_t> seed_bytes;
  std::vector<std::uint32_t> seed_slots;
  std::vector<std::uint64_t> seed_streams;
  std::size_t first_event = 0;
  for (; first_event < trace.events.size() && seed_bytes.size() < seeds; ++first_event) {
    const TraceEvent& event = trace.events[first_event];
    if (event.kind != EventKind::kAllocate) continue;
    seed_bytes.push_back(event.bytes);
    seed_slots.push_back(event.slot);
    seed_streams.push_back(trace.streams[event.stream]);
  }
  std::size_t seed = 0;
  std::vector<std::uint32_t> gaps;
  const auto lone = [&](std::size_t i) { slot_of[seed_slots[i]] = builder.allocate(seed_bytes[i], seed_streams[i]); };
  for (const SegmentInfo& segment : recorded.initial_segments) {
    const std::uint64_t segment_end = end_of(segment);
    for (; seed < seeds && recorded.seed_addresses[seed] < segment.address; ++seed) lone(seed);
    SegmentBuilder place(builder, segment, gaps);
    place.begin();
    for (; seed < seeds && recorded.seed_addresses[seed] < segment_end; ++seed) {
      const std::uint64_t address = recorded.seed_addresses[seed];
      const std::uint64_t limit =
          seed + 1 < seeds ? std::min(segment_end, recorded.seed_addresses[seed + 1]) : segment_end;
      std::uint64_t end = address + std::min(limit - address, align_up(seed_bytes[seed], pytorch::kMinBlockBytes));
      // A remainder of up to a mebibyte is never split off a large block.
      if (segment.is_large && limit - end <= pytorch::kLargeSplitSlackBytes) end = limit;
      slot_of[seed_slots[seed]] = place.block(address, end);
    }
    place.end();
  }
  for (; seed < seeds; ++seed) lone(seed);
  for (const std::uint32_t slot : gaps) builder.free(slot);
  prefix_events = static_cast<std::int64_t>(builder.counted()) - static_cast<std::int64_t>(seeds);

  for (std::size_t i = first_event; i < trace.events.size(); ++i) {
    if (trace.events[i].kind != EventKind::kMark) builder.repeat(trace, trace.events[i], slot_of);
  }
  Trace warmed = std::move(builder).finish();
  warmed.recorded.emplace();
  warmed.recorded->pytorch_conf = recorded.pytorch_conf;
  warmed.recorded->is_whole = true;
  warmed.recorded->acquired = recorded.acquired;
  return warmed;
}

namespace {

/// What failed in the recording is not asked for: the events keep their numbers.
Trace without_failures(Trace trace, const std::vector<RecordedOom>& ooms, std::int64_t shift) {
  std::uint64_t event = 0;
  std::size_t next = 0;
  for (TraceEvent& entry : trace.events) {
    if (!is_counted(entry.kind)) continue;
    if (next < ooms.size() &&
        static_cast<std::uint64_t>(static_cast<std::int64_t>(ooms[next].event) + shift) == event) {
      entry.kind = EventKind::kUse;  // of a block that is not there: nothing, and so is its free
      ++next;
    }
    ++event;
  }
  return trace;
}

/// PyTorch has an entry for each stretch that it maps, others one for each page: the sums of an event are compared.
std::vector<DeviceCall> merged(const std::vector<DeviceCall>& calls) {
  std::vector<DeviceCall> result;
  for (const DeviceCall& call : calls) {
    if (call.action == HistoryAction::kOom) continue;
    const bool is_paged = call.action == HistoryAction::kSegmentMap || call.action == HistoryAction::kSegmentUnmap;
    if (is_paged && !result.empty() && result.back().action == call.action && result.back().event == call.event) {
      result.back().bytes += call.bytes;
    } else {
      result.push_back(call);
    }
  }
  return result;
}

/// How many of each are in the other, in whatever order.
std::uint64_t in_common(std::vector<DeviceCall> a, std::vector<DeviceCall> b) {
  const auto before = [](const DeviceCall& x, const DeviceCall& y) {
    return std::tie(x.event, x.action, x.bytes) < std::tie(y.event, y.action, y.bytes);
  };
  std::ranges::sort(a, before);
  std::ranges::sort(b, before);
  std::vector<DeviceCall> both;
  std::ranges::set_intersection(a, b, std::back_inserter(both), before);
  return both.size();
}

/// `replayed` is the trace, begun `shift` events earlier where its first segments had to be put back.
Fidelity compare(const Trace& trace, const Trace& replayed, std::int64_t shift, const StackConfig& policy,
                 std::optional<std::uint64_t> capacity_bytes, Fidelity fidelity) {
  const RecordedAllocator& recorded = *trace.recorded;
  JobOptions options;
  options.capacity_bytes = capacity_bytes;
  options.timed_passes = 0;
  options.time_each_call = false;
  options.keep_actions = true;
  const ReplayRow row = run_job(replayed, policy, options);
  if (!row.failure.empty()) {
    fidelity.why_unknown = "the replay under the recorded settings failed: " + row.failure;
    return fidelity;
  }
  fidelity.is_known = true;
  fidelity.capacity_bytes = capacity_bytes;
  fidelity.recorded_reserved_bytes = recorded.reserved_bytes;
  fidelity.recorded_peak_bytes = recorded.peak_reserved_bytes;
  fidelity.replayed_reserved_bytes = row.end_reserved_bytes;
  fidelity.replayed_peak_bytes = row.peak_reserved_bytes;
  std::vector<DeviceCall> made;
  const std::int64_t start = static_cast<std::int64_t>(trace.facts.seeded_blocks);
  for (DeviceCall action : row.actions) {
    const std::int64_t event = static_cast<std::int64_t>(action.event) - shift;
    if (!recorded.is_whole && event < start) continue;
    action.event = static_cast<std::uint64_t>(event);
    made.push_back(action);
  }
  made = merged(made);
  const std::vector<DeviceCall> wanted = merged(recorded.actions);
  fidelity.recorded_actions = wanted.size();
  fidelity.replayed_actions = made.size();
  fidelity.matching_actions = static_cast<std::uint64_t>(std::ranges::mismatch(made, wanted).in1 - made.begin());
  fidelity.common_actions = in_common(made, wanted);
  fidelity.is_exact = made == wanted && fidelity.recorded_reserved_bytes == fidelity.replayed_reserved_bytes;
  return fidelity;
}

/// On a device without limit, or on one that is as full as the recorded one where that comes closer.
Fidelity best_replay(const Trace& trace, const StackConfig& policy, const Fidelity& fidelity) {
  const RecordedAllocator& recorded = *trace.recorded;
  std::int64_t shift = 0;
  const bool is_warm =
      recorded.has_device_calls && !recorded.is_whole && recorded.seed_addresses.size() == trace.facts.seeded_blocks;
  const Trace warmed = is_warm ? warm_trace(trace, shift) : Trace{};
  const Trace& from_start = is_warm ? warmed : trace;
  const Trace served = trace.ooms.empty() ? Trace{} : without_failures(from_start, trace.ooms, shift);
  // What failed in the recording fails again only on a device that is as full. Its size need not be known: the peak of
  // what was reserved fitted, and whatever pressed the allocator to give back or to fail was more than that.
  const bool is_pressed = recorded.pressed != 0 || !trace.ooms.empty();
  const Trace& unlimited = trace.ooms.empty() ? from_start : served;
  std::optional<Fidelity> limited;
  if (is_pressed) limited = compare(trace, from_start, shift, policy, recorded.peak_reserved_bytes, fidelity);
  if (limited && limited->is_exact) return *limited;
  Fidelity free = compare(trace, unlimited, shift, policy, std::nullopt, fidelity);
  const bool is_limited_better =
      limited && limited->is_known &&
      (!free.is_known || (!free.is_exact && limited->matching_actions >= free.matching_actions));
  return is_limited_better ? *limited : free;
}

/// As today's PyTorch chooses among equal blocks, or as an older one did, where that comes closer.
Fidelity of_either_version(const Trace& trace, const StackConfig& policy, const Fidelity& fidelity) {
  Fidelity today = best_replay(trace, policy, fidelity);
  if (!today.is_known || today.is_exact || trace.recorded->acquired.empty() || !knows_ties(policy)) return today;
  const StackConfig older = with_ties_by_address(policy);
  if (older.options.spec() == policy.options.spec()) return today;
  Fidelity before = best_replay(trace, older, fidelity);
  before.ties_by_address = true;
  const bool is_closer = before.is_known && (before.is_exact || before.matching_actions > today.matching_actions);
  return is_closer ? before : today;
}

}  // namespace

Fidelity measure_fidelity(const Trace& trace, const StackConfig& policy, const std::string& settings) {
  Fidelity fidelity;
  fidelity.settings = settings;
  const bool is_replay = !trace.replayed_under.empty();
  if (is_replay) {
    fidelity.why_unknown = "this file was written by a replay of Tenon under '" + trace.replayed_under +
                           "': its device calls are not those of a recording";
  }
  if (!trace.recorded || trace.recorded->peak_reserved_bytes == 0) {
    if (!is_replay && tells_reserved(trace)) {
      fidelity.why_unknown =
          "the " + trace.format + " holds no segment of this device: what was reserved on it is not recorded";
    } else if (!is_replay) {
      fidelity.why_unknown =
          "a " + trace.format +
          " history does not say what the recorded allocator reserved; a PyTorch memory snapshot does";
    }
    return fidelity;
  }
  const RecordedAllocator& recorded = *trace.recorded;
  if (trace.facts.frees == 0 && recorded.actions.empty()) {
    if (!is_replay)
      fidelity.why_unknown = (tells_reserved(trace) ? "the " + trace.format : std::string("it")) + " holds no history";
    return fidelity;
  }
  if (const auto allocator = trace.header.find("allocator");
      allocator != trace.header.end() && allocator->second != policy.policy.name) {
    fidelity.why_unknown = "it was recorded under Tenon's '" + allocator->second + "', not under " +
                           (settings.empty() ? "PyTorch's default settings" : "'" + settings + "'");
    return fidelity;
  }
  fidelity.is_stated = recorded.has_settings || !settings.empty();
  const std::string why_unknown = fidelity.why_unknown;
  fidelity.why_unknown.clear();
  fidelity = of_either_version(trace, policy, fidelity);
  if (recorded.has_device_calls || !fidelity.is_known) return fidelity;
  // The peaks stay for those who judge by them.
  fidelity.is_known = fidelity.is_exact = false;
  fidelity.why_unknown = is_replay ? why_unknown
                                   : "the recorded device calls are not in this file (a " + trace.format +
                                         " history); a PyTorch memory snapshot of the whole run has them";
  return fidelity;
}

}  // namespace tenon::replay
