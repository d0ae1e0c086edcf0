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
    if (!problem_.empty() || block.data == nullptr) return;
    const std::string lost = request_differs(block.request, request);
    if (!lost.empty()) problem_ = "lost a request: " + lost;
  }
  void foreign_exception(const CallFacts& facts, const std::string& what) override {
    throw PlacementError("an allocator may throw only tenon::OutOfMemory and tenon::Error, and " + text_of(facts) +
                         " threw " + what);
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
      source_(options.capacity_bytes.value_or(0), segments_for(trace, policy)),
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

/// What this pass looks at around the calls of each event.
class ObservedPass::Hooks : public NoHooks {
 public:
  explicit Hooks(ObservedPass& pass) : pass_(pass) {}
  std::uint64_t event = 0;

  void served(const TraceEvent& entry, Block& block) {
    if (block.bytes < entry.bytes) {
      throw PlacementError("handed out " + std::to_string(block.bytes) + " bytes for a request of " +
                           std::to_string(entry.bytes));
    }
    if (!pass_.checks()) return;
    const auto address = reinterpret_cast<std::uintptr_t>(block.data);
    const Place place = pass_.oracle_.place(entry.slot, address, block.bytes, pass_.alignment_);
    if (!pass_.lost_request_.empty()) throw PlacementError(pass_.lost_request_);
    if (pass_.watches_streams()) {
      const std::string wrong = pass_.streams_.handed_out(address, block.bytes, block.request.stream);
      if (!wrong.empty()) throw PlacementError(wrong);
    }
    pass_.placement_.number(event);
    pass_.placement_.number(place.segment);
    pass_.placement_.number(place.offset);
  }

  void refused(const TraceEvent& entry) {
    if (pass_.row_.ooms++ == 0) {
      pass_.row_.first_oom_event = event;
      pass_.row_.first_oom_bytes = entry.bytes;
    }
    if (pass_.checks()) pass_.oracle_.rethrow_problem();
  }

  bool using_elsewhere(const TraceEvent& entry, Block&) {
    const StreamRef stream{pass_.trace_.streams[entry.stream]};
    if (pass_.watches_streams()) pass_.users_[entry.slot].push_back(stream);
    if (!pass_.tells_last_uses_ || !pass_.is_last_use(entry)) return true;
    pass_.last_use_ = stream;
    return false;
  }

  StreamRef freeing(const TraceEvent& entry, Block& block) {
    if (pass_.checks()) pass_.oracle_.lift(entry.slot, entry.deferred);
    if (pass_.watches_streams()) {
      std::vector<StreamRef> users = std::exchange(pass_.users_[entry.slot], {});
      users.push_back(block.request.stream);
      pass_.streams_.freed(reinterpret_cast<std::uintptr_t>(block.data), block.bytes, std::move(users));
    }
    return std::exchange(pass_.last_use_, std::nullopt).value_or(block.request.stream);
  }

  void freed(const TraceEvent& entry, Block& block) {
    if (entry.deferred) {
      pass_.waiting_bytes_ += block.bytes;
    } else {
      block = {};
    }
  }

  void completed(const TraceEvent& entry, Block& block) {
    if (pass_.checks()) pass_.oracle_.completed(entry.slot);
    pass_.waiting_bytes_ -= block.bytes;
    block = {};
  }

 private:
  ObservedPass& pass_;
};

void ObservedPass::run(std::uint64_t last_event) {
  Hooks hooks(*this);
  EventDriver driver(trace_, *stack_, source_, hooks);
  std::uint64_t& event = hooks.event;
  try {
    for (const TraceEvent& entry : trace_.events) {
      if (!is_counted(entry.kind)) {
        driver.play(entry, blocks_[entry.slot]);
        continue;
      }
      if (progress_ != nullptr) {
        progress_->event.store(event, std::memory_order_relaxed);
      } else if (event % kEventsPerReport == 0) {
        tell_work("checking", static_cast<double>(event) / static_cast<double>(trace_.facts.events));
      }
      log_.event = event;
      driver.play(entry, blocks_[entry.slot]);
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

void ObservedPass::after(std::uint64_t event) {
  const Usage usage = stack_->usage();
  if (checks() && usage.allocated_bytes > usage.reserved_bytes) {
    throw PlacementError("handed out blocks of " + std::to_string(usage.allocated_bytes) + " bytes in all with only " +
                         std::to_string(usage.reserved_bytes) + " taken from the device: Block::bytes is wrong");
  }
  series_.after(event, usage.reserved_bytes);
  // What waits for the recording's word to be free is known here only.
  row_.peak_active_bytes = std::max<std::uint64_t>(row_.peak_active_bytes, usage.allocated_bytes + waiting_bytes_);
  if (usage.peak_reserved_bytes > row_.peak_reserved_bytes) {
    row_.peak_reserved_bytes = usage.peak_reserved_bytes;
    row_.peak_reserved_event = event;
    const auto requested = static_cast<double>(usage.requested_bytes);
    const auto allocated = static_cast<double>(usage.allocated_bytes);
    row_.internal_fragmentation = usage.allocated_bytes == 0 ? 0 : 1 - requested / allocated;
    row_.external_fragmentation =
        usage.reserved_bytes == 0 ? 0 : 1 - allocated / static_cast<double>(usage.reserved_bytes);
  }
  if (options_.keep_curve) curve_.after(event, usage.requested_bytes, usage.reserved_bytes);
}

void ObservedPass::finish() {
  if (checks()) oracle_.rethrow_problem();
  const Usage usage = stack_->usage();
  row_.peak_reserved_bytes = usage.peak_reserved_bytes;
  row_.end_reserved_bytes = usage.reserved_bytes;
  row_.same_from_bytes = std::min(source_.same_from_bytes(), row_.capacity_bytes.value_or(~std::uint64_t{0}));
  row_.excess = excess_of(static_cast<double>(row_.peak_reserved_bytes), static_cast<double>(row_.peak_requested_bytes))
                    .value_or(0);
  const auto number = [](std::int64_t figure) { return static_cast<std::uint64_t>(figure); };
  const MemoryStats stats = stack_->stats();
  row_.peak_allocated_bytes = number(stats.allocated_bytes.peak);
  for_each_device_count([&](const char*, std::uint64_t& to, std::int64_t from) { to = number(from); }, row_, stats);
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
