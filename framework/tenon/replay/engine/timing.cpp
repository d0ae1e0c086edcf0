// Timing, with a second thread in the process.
#include <tenon/core/seconds_since.h>
#include <tenon/replay/engine/event_driver.h>
#include <tenon/replay/engine/replay_source.h>
#include <tenon/replay/engine/sleeping_thread.h>
#include <tenon/replay/engine/timing.h>

#include <algorithm>
#include <chrono>
#include <memory>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace tenon::replay {

namespace {

using Clock = std::chrono::steady_clock;

/// Rising addresses and nothing else: what the loop costs without a policy.
class NullAllocator final : public Allocator {
 public:
  Block allocate(const Request& request) override {
    next_ += 512;
    return {.data = reinterpret_cast<void*>(next_), .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}

 private:
  std::uintptr_t next_ = 4096;
};

/// A policy on a device of its own, and the blocks that live.
struct Candidate {
  Candidate(const Trace& trace, const StackConfig* policy, const JobOptions& options)
      : source(options.capacity_bytes.value_or(0),
               policy != nullptr ? segments_for(trace, *policy) : std::span<const RecordedSegment>()),
        blocks(std::max<std::uint32_t>(1, trace.slot_count)) {
    if (policy != nullptr) {
      allocator = policy->policy.create({.source = source, .options = policy->options});
    } else {
      allocator = std::make_unique<NullAllocator>();
    }
  }
  ReplaySource source;
  std::vector<Block> blocks;
  std::unique_ptr<Allocator> allocator;
};

/// Returns the seconds that all events took.
double run_pass(Candidate& candidate, const Trace& trace) {
  NoHooks nothing_more;
  EventDriver driver(trace, *candidate.allocator, candidate.source, nothing_more);
  Block* const blocks = candidate.blocks.data();
  const auto start = Clock::now();
  for (const TraceEvent& event : trace.events) driver.play(event, blocks[event.slot]);
  return seconds_since(start);
}

std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
#endif
}

/// Nanoseconds of one tick, measured once.
double ns_per_tick() {
  static const double value = [] {
    const auto start = Clock::now();
    const std::uint64_t first = ticks();
    while (seconds_since(start) < 0.005) {
    }
    const std::uint64_t last = ticks();
    return seconds_since(start) * 1e9 / static_cast<double>(last - first);
  }();
  return value;
}

double clock_cost_ns() {
  std::uint64_t best = ~std::uint64_t{0};
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t first = ticks();
    const std::uint64_t last = ticks();
    best = std::min(best, last - first);
  }
  return static_cast<double>(best) * ns_per_tick();
}

/// An allocator's calls, with the time of each that hands out or takes back.
class TimedCalls {
 public:
  TimedCalls(Allocator& allocator, const TraceFacts& facts) : allocator_(allocator) {
    allocate_ns.reserve(facts.allocations);
    free_ns.reserve(facts.frees);
  }
  std::vector<float> allocate_ns, free_ns;

  Block allocate(const Request& request) {
    const std::uint64_t start = ticks();
    Block block = allocator_.allocate(request);
    allocate_ns.push_back(since(start));
    return block;
  }
  void deallocate(const Block& block, StreamRef last_use) {
    const std::uint64_t start = ticks();
    allocator_.deallocate(block, last_use);
    free_ns.push_back(since(start));
  }
  void record_use(const Block& block, StreamRef stream) { allocator_.record_use(block, stream); }
  void trim(std::size_t keep_bytes) { allocator_.trim(keep_bytes); }

 private:
  float since(std::uint64_t start) const { return static_cast<float>(static_cast<double>(ticks() - start) * scale_); }

  Allocator& allocator_;
  const double scale_ = ns_per_tick();
};

}  // namespace

/// Percentiles of a list that is sorted in place.
static Latency latency_of(std::vector<float>& samples) {
  Latency latency;
  if (samples.empty()) return latency;
  std::ranges::sort(samples);
  const auto at = [&](double share) {
    return static_cast<double>(
        samples[std::min(samples.size() - 1, static_cast<std::size_t>(share * static_cast<double>(samples.size())))]);
  };
  latency.p50 = at(0.5);
  latency.p90 = at(0.9);
  latency.p99 = at(0.99);
  latency.p99_9 = at(0.999);
  latency.max = samples.back();
  double sum = 0;
  for (const float sample : samples) sum += sample;
  latency.mean = sum / static_cast<double>(samples.size());
  return latency;
}

void time_passes(const Trace& trace, const StackConfig& policy, const JobOptions& options, ReplayRow& row) {
  const SleepingThread sleeping;
  // The first pass of a forked process pays for every page that it copies and for every cache line: where no observed
  // pass came before, one that is not timed does.
  if (!options.observe) {
    Candidate candidate(trace, &policy, options);
    run_pass(candidate, trace);
  }
  double spent = 0;
  for (int pass = 0; pass < options.timed_passes && (pass == 0 || spent < options.timed_budget_seconds); ++pass) {
    Candidate candidate(trace, &policy, options);
    const double seconds = run_pass(candidate, trace);
    row.pass_seconds.push_back(seconds);
    spent += seconds;
    Candidate harness(trace, nullptr, options);
    const double harness_seconds = run_pass(harness, trace);
    row.harness_seconds = pass == 0 ? harness_seconds : std::min(row.harness_seconds, harness_seconds);
  }
  row.seconds = *std::ranges::min_element(row.pass_seconds);
  row.events_per_second = row.seconds > 0 ? static_cast<double>(trace.facts.events) / row.seconds : 0;
}

void time_calls(const Trace& trace, const StackConfig& policy, const JobOptions& options, ReplayRow& row) {
  const SleepingThread sleeping;
  Candidate candidate(trace, &policy, options);
  TimedCalls calls(*candidate.allocator, trace.facts);
  NoHooks nothing_more;
  EventDriver driver(trace, calls, candidate.source, nothing_more);
  for (const TraceEvent& event : trace.events) driver.play(event, candidate.blocks[event.slot]);
  row.allocate_ns = latency_of(calls.allocate_ns);
  row.free_ns = latency_of(calls.free_ns);
  row.clock_ns = clock_cost_ns();
}

}  // namespace tenon::replay
