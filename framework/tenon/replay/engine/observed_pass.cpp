// One walk through the trace, with the figures read off the stack after each event.
#include <tenon/replay/engine/observed_pass.h>
#include <tenon/replay/trace/long_work.h>

#include <tenon/memory/watch/watched_allocator.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

namespace tenon::replay {

namespace {

constexpr std::size_t kCurvePoints = 1500;
constexpr std::uint64_t kEventsPerReport = 65536;

std::size_t alignment_of(const StackConfig& policy) {
  const auto& alignment = policy.policy.traits.alignment;
  return alignment ? alignment(policy.options) : kDefaultAlignment;
}

}  // namespace

void ReservedSeries::add(std::uint64_t event, std::uint64_t reserved) {
  last_ = reserved;
  ++changes_;
  char line[48];
  char* end = std::to_chars(line, line + 20, event).ptr;
  *end++ = ' ';
  end = std::to_chars(end, line + 46, reserved).ptr;
  *end++ = '\n';
  hash_.bytes(line, static_cast<std::size_t>(end - line));
}

CurveSampler::CurveSampler(std::uint64_t events) : stride_(std::max<std::uint64_t>(1, events / kCurvePoints)) {}

void CurveSampler::after(std::uint64_t event, std::uint64_t requested, std::uint64_t reserved) {
  if (points_.empty() || event / stride_ != points_.back().event / stride_) {
    points_.push_back({event, requested, reserved});
  } else {
    points_.back().requested_bytes = std::max(points_.back().requested_bytes, requested);
    points_.back().reserved_bytes = std::max(points_.back().reserved_bytes, reserved);
  }
}

namespace {

/// Looks at the blocks as the policy gives them: the host puts the request right in the ones that it passes on.
class PolicyCheck final : public CallWatcher {
 public:
  explicit PolicyCheck(std::string& problem) : problem_(problem) {}
  void* begins(const CallFacts&) override { return nullptr; }
  void ended(void*, std::uintptr_t) noexcept override {}
  void handed_out(const Block& block, const Request& request) override {
    if (problem_.empty() && block.data != nullptr &&
        (block.request.bytes != request.bytes || block.request.stream != request.stream)) {
      problem_ = "handed out a block whose request says " + std::to_string(block.request.bytes) + " bytes on stream " +
                 std::to_string(block.request.stream.id) + ", where " + std::to_string(request.bytes) + " on stream " +
                 std::to_string(request.stream.id) + " were asked for";
    }
  }
  void foreign_exception(const CallFacts& facts, const std::string& what) override {
    throw PlacementError(text_of(facts) + " threw " + what +
                         ", where only tenon::OutOfMemory and tenon::Error may leave");
  }

 private:
  std::string& problem_;
};

StackConfig with_policy_check(StackConfig policy, std::string& problem) {
  policy.policy = watched(policy.policy, std::make_shared<PolicyCheck>(problem));
  return policy;
}

}  // namespace

std::unique_ptr<AllocatorStack> trial_of(const StackConfig& policy, ReplaySource& source, SourceListener* listener) {
  return AllocatorStack::make_trial(source, {.policy = policy.policy, .options = policy.options, .layers = {}},
                                    listener);
}

ObservedPass::ObservedPass(const Trace& trace, const StackConfig& policy, const JobOptions& options, ReplayRow& row,
                           JobProgress* progress)
    : trace_(trace),
      options_(options),
      row_(row),
      progress_(progress),
      log_(row.actions),
      source_(options.capacity_bytes.value_or(0)),
      alignment_(alignment_of(policy)),
      stack_(trial_of(checks() ? with_policy_check(policy, lost_request_) : policy, source_, listener())),
      blocks_(std::max<std::uint32_t>(1, trace.slot_count)),
      users_(blocks_.size()),
      curve_(trace.facts.events) {
  if (checks()) source_.when_waited([this] { oracle_.synchronized(); });
}

SourceListener* ObservedPass::listener() {
  if (options_.keep_actions) return &log_;
  return options_.check_placement ? &oracle_ : nullptr;
}

void ObservedPass::run(std::uint64_t last_event) {
  std::uint64_t event = 0;
  try {
    for (const TraceEvent& entry : trace_.events) {
      if (!is_counted(entry.kind)) {
        if (entry.kind == EventKind::kFreeCompleted) complete(entry.slot);
        continue;
      }
      if (progress_ != nullptr) {
        progress_->event.store(event, std::memory_order_relaxed);
      } else if (event % kEventsPerReport == 0) {
        tell_work("checking", static_cast<double>(event) / static_cast<double>(trace_.facts.events));
      }
      log_.event = event;
      apply(entry, event);
      after(event);
      if (event == last_event || (options_.stop_at_first_oom && row_.ooms != 0)) break;
      ++event;
    }
    finish();
    if (checks() && last_event == kNoEvent) tear_down();
  } catch (const std::exception& error) {
    row_.failure = error.what();
    row_.failed_event = event;
  }
}

std::vector<Segment> ObservedPass::layout() const {
  SegmentCollector collector;
  stack_->walk(collector);
  return collector.take();
}

void ObservedPass::apply(const TraceEvent& entry, std::uint64_t event) {
  switch (entry.kind) {
    case EventKind::kAllocate:
      return allocate(entry, event);
    case EventKind::kFree:
      return free(entry);
    case EventKind::kUse:
      if (tells_last_uses_ && is_last_use(entry)) last_use_ = StreamRef{trace_.streams[entry.stream]};
      // What was never served is used by nobody: its slot's next block is not to inherit the stream.
      if (watches_streams() && blocks_[entry.slot].data != nullptr)
        users_[entry.slot].push_back({trace_.streams[entry.stream]});
      if (!last_use_) stack_->record_use(blocks_[entry.slot], {trace_.streams[entry.stream]});
      return;
    case EventKind::kEmptyCache:
      stack_->trim(0);
      return;
    case EventKind::kMark:
    case EventKind::kFreeCompleted:
      return;
  }
}

void ObservedPass::allocate(const TraceEvent& entry, std::uint64_t event) {
  Block& block = blocks_[entry.slot];
  try {
    block = stack_->allocate({.bytes = entry.bytes, .stream = {trace_.streams[entry.stream]}});
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
    if (!lost_request_.empty()) throw PlacementError(lost_request_);
    if (watches_streams()) {
      const std::string wrong = streams_.handed_out(reinterpret_cast<std::uintptr_t>(block.data), block.bytes,
                                                    {trace_.streams[entry.stream]});
      if (!wrong.empty()) throw PlacementError(wrong);
    }
    placement_.number(event);
    placement_.number(place.segment);
    placement_.number(place.offset);
  }
}

void ObservedPass::free(const TraceEvent& entry) {
  Block& block = blocks_[entry.slot];
  const std::optional<StreamRef> last_use = std::exchange(last_use_, std::nullopt);
  if (block.data == nullptr) return;  // never served
  if (entry.deferred) stack_->record_use(block, ReplaySource::waiting_stream(entry.slot));
  if (checks()) {
    oracle_.lift(entry.slot, entry.deferred);
  }
  if (watches_streams()) {
    std::vector<StreamRef> users = std::exchange(users_[entry.slot], {});
    users.push_back(block.request.stream);
    streams_.freed(reinterpret_cast<std::uintptr_t>(block.data), block.bytes, std::move(users));
  }
  stack_->deallocate(block, last_use.value_or(block.request.stream));
  if (entry.deferred) {
    waiting_bytes_ += block.bytes;
  } else {
    block = {};
  }
}

// Note [Last use]
// A recording writes a free whose last use is on another stream as a use there and the free right behind it: to wait
// for, both mean the same. A policy is told of the two in different calls, record_use and deallocate, and may forget
// either. So a history with such pairs is observed twice, once in each way; the figures are those of the first.
static bool is_last_use_of(const TraceEvent& event, const TraceEvent& next) {
  return event.kind == EventKind::kUse && next.kind == EventKind::kFree && next.slot == event.slot && !next.deferred;
}

bool ObservedPass::is_last_use(const TraceEvent& use) const {
  const TraceEvent* const next = &use + 1;
  return next != trace_.events.data() + trace_.events.size() && is_last_use_of(use, *next);
}

bool has_last_uses(const Trace& trace) {
  return std::ranges::adjacent_find(trace.events, is_last_use_of) != trace.events.end();
}

void ObservedPass::complete(std::uint32_t slot) {
  source_.complete(slot);
  if (checks()) oracle_.completed(slot);
  waiting_bytes_ -= blocks_[slot].bytes;
  blocks_[slot] = {};
}

void ObservedPass::after(std::uint64_t event) {
  const Usage usage = stack_->usage();
  if (checks() && usage.allocated_bytes > usage.held_bytes) {
    throw PlacementError("handed out blocks of " + std::to_string(usage.allocated_bytes) + " bytes in all with only " +
                         std::to_string(usage.held_bytes) + " taken from the device: Block::bytes is wrong");
  }
  series_.after(event, usage.held_bytes);
  // What waits for the recording's word to be free is known here only.
  row_.peak_active_bytes = std::max<std::uint64_t>(row_.peak_active_bytes, usage.allocated_bytes + waiting_bytes_);
  if (usage.peak_held_bytes > row_.peak_reserved_bytes) {
    row_.peak_reserved_bytes = usage.peak_held_bytes;
    row_.peak_reserved_event = event;
    const auto requested = static_cast<double>(usage.requested_bytes);
    const auto allocated = static_cast<double>(usage.allocated_bytes);
    row_.internal_fragmentation = usage.allocated_bytes == 0 ? 0 : 1 - requested / allocated;
    row_.external_fragmentation = usage.held_bytes == 0 ? 0 : 1 - allocated / static_cast<double>(usage.held_bytes);
  }
  if (options_.keep_curve) curve_.after(event, usage.requested_bytes, usage.held_bytes);
}

void ObservedPass::finish() {
  if (checks()) oracle_.rethrow_problem();
  const Usage usage = stack_->usage();
  row_.peak_reserved_bytes = usage.peak_held_bytes;
  row_.end_reserved_bytes = usage.held_bytes;
  row_.same_from_bytes = std::min(source_.same_from_bytes(), row_.capacity_bytes.value_or(~std::uint64_t{0}));
  if (row_.peak_requested_bytes != 0) {
    row_.excess = static_cast<double>(row_.peak_reserved_bytes) / static_cast<double>(row_.peak_requested_bytes) - 1;
  }
  const auto number = [](std::int64_t figure) { return static_cast<std::uint64_t>(figure); };
  const MemoryStats stats = stack_->stats();
  row_.peak_allocated_bytes = number(stats.allocated_bytes.peak);
  row_.device_allocations = number(stats.device_allocations);
  row_.device_frees = number(stats.device_frees);
  row_.device_maps = number(stats.device_maps);
  row_.device_unmaps = number(stats.device_unmaps);
  row_.device_synchronizations = number(stats.device_synchronizations - stats.device_waits);
  row_.retries = number(stats.policy.retries);
  if (stats.policy.has_pools) row_.peak_active_bytes = number(stats.policy.active_bytes[0].peak);
  row_.reserved_changes = series_.changes();
  row_.reserved_series_fnv1a64 = series_.value();
  row_.placement_hash = placement_.value();
  row_.curve = curve_.take();
}

// The destructor of a policy gives back everything, blocks still out included.
void ObservedPass::tear_down() {
  if (progress_ != nullptr) progress_->phase.store(kTearDownPhase, std::memory_order_relaxed);
  stack_.reset();
  if (const std::size_t left = source_.used_bytes(); left != 0)
    throw PlacementError("kept " + std::to_string(left) + " bytes of the device when it was destroyed");
  if (progress_ != nullptr) progress_->phase.store(1, std::memory_order_relaxed);
}

}  // namespace tenon::replay
