// The observed pass of a replay, and how a cell's passes follow each other.
#include <tenon/replay/engine/fnv.h>
#include <tenon/replay/engine/placement_oracle.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/replay/engine/replay_source.h>
#include <tenon/replay/engine/timing.h>

#include <algorithm>
#include <charconv>

namespace tenon::replay {

namespace {

constexpr std::size_t kCurvePoints = 1500;

/// Feeds "EVENT RESERVED\n" lines to the hash that the recorded PyTorch runs were given.
class ReservedSeries {
 public:
  void after(std::uint64_t event, std::uint64_t reserved) {
    if (changes_ != 0 && reserved == last_) return;
    last_ = reserved;
    ++changes_;
    char line[48];
    char* end = std::to_chars(line, line + 20, event).ptr;
    *end++ = ' ';
    end = std::to_chars(end, line + 46, reserved).ptr;
    *end++ = '\n';
    hash_.bytes(line, static_cast<std::size_t>(end - line));
  }
  std::uint64_t changes() const { return changes_; }
  std::uint64_t value() const { return hash_.value(); }

 private:
  Fnv1a hash_;
  std::uint64_t last_ = 0;
  std::uint64_t changes_ = 0;
};

/// Keeps at most kCurvePoints points, each the one of its stretch with the highest reserved bytes.
class Curve {
 public:
  explicit Curve(std::uint64_t events) : stride_(std::max<std::uint64_t>(1, events / kCurvePoints)) {}
  void after(std::uint64_t event, std::uint64_t requested, std::uint64_t reserved) {
    if (points.empty() || event / stride_ != points.back().event / stride_) {
      points.push_back({event, requested, reserved});
    } else {
      points.back().requested_bytes = std::max(points.back().requested_bytes, requested);
      points.back().reserved_bytes = std::max(points.back().reserved_bytes, reserved);
    }
  }
  std::vector<CurvePoint> points;

 private:
  std::uint64_t stride_;
};

class Layout final : public SegmentVisitor {
 public:
  void segment(const SegmentInfo& info) override { segments.push_back({info.bytes, info.is_expandable, {}}); }
  void block(const BlockInfo& info) override {
    if (!segments.empty()) segments.back().blocks.push_back({info.bytes, info.requested_bytes, info.state});
  }
  std::vector<LayoutSegment> segments;
};

/// Passes device calls on as SegmentActions.
class ActionLog final : public SourceListener {
 public:
  explicit ActionLog(std::vector<SegmentAction>& actions) : actions_(actions) {}
  std::uint64_t event = 0;
  bool is_on = true;  ///< off when the policy is taken down
  void acquired(std::uint64_t, std::uint64_t bytes) override { add(SegmentAction::Kind::kAlloc, bytes); }
  void released(std::uint64_t, std::uint64_t bytes) override { add(SegmentAction::Kind::kFree, bytes); }
  void address_reserved(std::uint64_t, std::uint64_t) override {}
  void address_unreserved(std::uint64_t, std::uint64_t) override {}
  void created(std::uint64_t, std::uint64_t) override {}
  void destroyed(std::uint64_t, std::uint64_t) override {}
  void mapped(std::uint64_t, std::uint64_t bytes, std::uint64_t, std::uint64_t) override {
    add(SegmentAction::Kind::kMap, bytes);
  }
  void unmapped(std::uint64_t, std::uint64_t bytes) override { add(SegmentAction::Kind::kUnmap, bytes); }
  void synchronized() override {}

 private:
  void add(SegmentAction::Kind kind, std::uint64_t bytes) {
    if (is_on) actions_.push_back({kind, bytes, event});
  }
  std::vector<SegmentAction>& actions_;
};

/// What addresses are multiples of. PyTorch 1.13 with one division rounds nothing and cuts blocks anywhere: its
/// reproduction is not disqualified for that.
std::size_t promised_alignment(const Options& options) {
  for (const OptionSpec& option : options.schema())
    if (option.name == "compat" && options.text("compat") == "1.13") return 1;
  return kDefaultAlignment;
}

class ObservedPass {
 public:
  ObservedPass(const Trace& trace, const StackConfig& policy, const CellOptions& options, ReplayRow& row,
               CellProgress* progress)
      : trace_(trace),
        options_(options),
        row_(row),
        progress_(progress),
        log_(row.actions),
        source_(options.capacity_bytes.value_or(0), listener()),
        alignment_(promised_alignment(policy.options)),
        allocator_(policy.policy.create({.source = source_, .options = policy.options})),
        blocks_(std::max<std::uint32_t>(1, trace.slot_count)),
        curve_(trace.facts.events) {}

  /// Stops after `last_event`. Figures are in the row then, the allocator's state is as it was there.
  void run(std::uint64_t last_event = kNoEvent) {
    std::uint64_t event = 0;
    try {
      for (const TraceEvent& entry : trace_.events) {
        if (!is_counted(entry.kind)) {
          if (entry.kind == EventKind::kFreeCompleted) complete(entry.slot);
          continue;
        }
        if (progress_ != nullptr) progress_->event.store(event, std::memory_order_relaxed);
        log_.event = event;
        apply(entry, event);
        after(event);
        if (event == last_event || (options_.stop_at_first_oom && row_.ooms != 0)) break;
        ++event;
      }
      finish();
    } catch (const std::exception& error) {
      row_.failure = error.what();
      row_.failed_event = event;
    }
  }
  void layout() {
    Layout layout;
    allocator_->walk(layout);
    row_.layout = std::move(layout.segments);
  }

 private:
  SourceListener* listener() {
    if (options_.keep_actions) return &log_;
    return options_.check_placement ? &oracle_ : nullptr;
  }
  bool checks() const { return options_.check_placement && !options_.keep_actions; }

  void apply(const TraceEvent& entry, std::uint64_t event) {
    switch (entry.kind) {
      case EventKind::kAllocate:
        return allocate(entry, event);
      case EventKind::kFree:
        return free(entry);
      case EventKind::kUse: {
        const Block& block = blocks_[entry.slot];
        const StreamRef stream{trace_.streams[entry.stream]};
        if (block.data != nullptr && !(stream == block.request.stream)) allocator_->record_use(block, stream);
        return;
      }
      case EventKind::kEmptyCache:
        allocator_->trim(0);
        return;
      case EventKind::kMark:
      case EventKind::kFreeCompleted:
        return;
    }
  }

  void allocate(const TraceEvent& entry, std::uint64_t event) {
    Block& block = blocks_[entry.slot];
    try {
      block = allocator_->allocate({.bytes = entry.bytes, .stream = {trace_.streams[entry.stream]}});
    } catch (const OutOfMemory&) {
      block = {};
      if (row_.ooms++ == 0) {
        row_.first_oom_event = event;
        row_.first_oom_bytes = entry.bytes;
      }
      if (checks()) oracle_.rethrow_problem();
      return;
    }
    if (block.bytes < entry.bytes) {
      throw PlacementError("handed out " + std::to_string(block.bytes) + " bytes for a request of " +
                           std::to_string(entry.bytes));
    }
    if (checks()) {
      const Place place =
          oracle_.place(entry.slot, reinterpret_cast<std::uintptr_t>(block.data), block.bytes, alignment_);
      placement_.number(event);
      placement_.number(place.segment);
      placement_.number(place.offset);
    }
    requested_ += entry.bytes;
    allocated_ += block.bytes;
    row_.peak_allocated_bytes = std::max(row_.peak_allocated_bytes, allocated_);
    row_.peak_active_bytes = std::max(row_.peak_active_bytes, allocated_ + waiting_);
  }

  void free(const TraceEvent& entry) {
    Block& block = blocks_[entry.slot];
    if (block.data == nullptr) return;  // never served
    if (entry.deferred) allocator_->record_use(block, ReplaySource::waiting_stream(entry.slot));
    if (checks()) oracle_.lift(entry.slot, entry.deferred);
    allocator_->deallocate(block, block.request.stream);
    requested_ -= block.request.bytes;
    allocated_ -= block.bytes;
    if (entry.deferred) waiting_ += block.bytes;
    if (!entry.deferred) block = {};
  }

  void complete(std::uint32_t slot) {
    source_.complete(slot);
    if (checks()) oracle_.completed(slot);
    waiting_ -= blocks_[slot].bytes;
    blocks_[slot] = {};
  }

  void after(std::uint64_t event) {
    const std::uint64_t reserved = source_.reserved_bytes();
    series_.after(event, reserved);
    if (source_.peak_reserved_bytes() > peak_) {
      peak_ = source_.peak_reserved_bytes();
      row_.peak_reserved_event = event;
      row_.internal_fragmentation =
          allocated_ == 0 ? 0 : 1 - static_cast<double>(requested_) / static_cast<double>(allocated_);
      row_.external_fragmentation =
          reserved == 0 ? 0 : 1 - static_cast<double>(allocated_) / static_cast<double>(reserved);
    }
    if (options_.keep_curve) curve_.after(event, requested_, reserved);
  }

  void finish() {
    log_.is_on = false;
    if (checks()) oracle_.rethrow_problem();
    row_.peak_reserved_bytes = source_.peak_reserved_bytes();
    row_.end_reserved_bytes = source_.reserved_bytes();
    row_.same_from_bytes = std::min(source_.same_from_bytes(), row_.capacity_bytes.value_or(~std::uint64_t{0}));
    if (row_.peak_requested_bytes != 0) {
      row_.excess = static_cast<double>(row_.peak_reserved_bytes) / static_cast<double>(row_.peak_requested_bytes) - 1;
    }
    const DeviceCalls& calls = source_.calls();
    row_.device_allocations = calls.allocations;
    row_.device_frees = calls.frees;
    row_.device_maps = calls.maps;
    row_.device_unmaps = calls.unmaps;
    row_.device_synchronizations = calls.synchronizations;
    PolicyStats stats;
    allocator_->report(stats);
    row_.retries = static_cast<std::uint64_t>(stats.retries);
    if (stats.has_pools) row_.peak_active_bytes = static_cast<std::uint64_t>(stats.active_bytes[0].peak);
    row_.reserved_changes = series_.changes();
    row_.reserved_series_fnv1a64 = series_.value();
    row_.placement_hash = placement_.value();
    row_.curve = std::move(curve_.points);
  }

  const Trace& trace_;
  const CellOptions& options_;
  ReplayRow& row_;
  CellProgress* progress_;
  ActionLog log_;
  PlacementOracle oracle_;
  ReplaySource source_;
  const std::size_t alignment_;
  std::unique_ptr<Allocator> allocator_;
  std::vector<Block> blocks_;
  ReservedSeries series_;
  Fnv1a placement_;
  Curve curve_;
  std::uint64_t requested_ = 0;
  std::uint64_t allocated_ = 0;
  std::uint64_t waiting_ = 0;
  std::uint64_t peak_ = 0;
};

void enter(CellProgress* progress, std::uint32_t phase) {
  if (progress != nullptr) progress->phase.store(phase, std::memory_order_relaxed);
}

}  // namespace

ReplayRow row_for(const Trace& trace, std::optional<std::uint64_t> capacity_bytes) {
  ReplayRow row;
  row.trace = trace.name;
  row.capacity_bytes = capacity_bytes;
  row.events = trace.facts.events;
  row.allocations = trace.facts.allocations;
  row.frees = trace.facts.frees;
  row.streams = trace.stream_count();
  row.peak_requested_bytes = trace.facts.peak_requested_bytes;
  return row;
}

/// Requests that no policy could serve on top of what lives, each left out where it came.
static void count_what_cannot_fit(const Trace& trace, std::uint64_t capacity_bytes, ReplayRow& row) {
  std::vector<std::uint64_t> live(trace.slot_count);
  std::uint64_t sum = 0, event = 0;
  for (const TraceEvent& entry : trace.events) {
    if (entry.kind == EventKind::kAllocate) {
      const bool fits = entry.bytes <= capacity_bytes - sum;
      if (!fits && row.ooms++ == 0) {
        row.first_oom_event = event;
        row.first_oom_bytes = entry.bytes;
      }
      live[entry.slot] = fits ? entry.bytes : 0;
      sum += live[entry.slot];
    } else if (entry.kind == EventKind::kFree) {
      sum -= live[entry.slot];
      live[entry.slot] = 0;
    }
    if (is_counted(entry.kind)) ++event;
  }
}

ReplayRow ideal_row(const Trace& trace, std::optional<std::uint64_t> capacity_bytes) {
  ReplayRow row = row_for(trace, capacity_bytes);
  row.allocator = row.label = "ideal";
  row.peak_allocated_bytes = row.peak_active_bytes = row.peak_reserved_bytes = row.peak_requested_bytes;
  row.peak_reserved_event = trace.facts.peak_event;
  if (capacity_bytes && row.peak_requested_bytes > *capacity_bytes) count_what_cannot_fit(trace, *capacity_bytes, row);
  return row;
}

ReplayRow replay_cell(const Trace& trace, const StackConfig& policy, const CellOptions& options,
                      CellProgress* progress) {
  ReplayRow row = row_for(trace, options.capacity_bytes);
  row.allocator = policy.policy.name;
  row.options = policy.options.entries(true);
  try {
    if (options.observe) {
      enter(progress, 1);
      ObservedPass(trace, policy, options, row, progress).run();
      if (!row.failure.empty()) return row;
      if (options.keep_layout) {
        CellOptions quiet = options;
        quiet.keep_curve = quiet.keep_actions = false;
        ReplayRow scratch = row_for(trace, options.capacity_bytes);
        ObservedPass again(trace, policy, quiet, scratch, progress);
        again.run(row.peak_reserved_event);
        again.layout();
        row.layout = std::move(scratch.layout);
      }
    }
    enter(progress, 2);
    if (options.timed_passes > 0) time_passes(trace, policy, options, row);
    enter(progress, 3);
    if (options.time_each_call) time_calls(trace, policy, options, row);
    enter(progress, 4);
  } catch (const std::exception& error) {
    row.failure = error.what();
  }
  return row;
}

}  // namespace tenon::replay
