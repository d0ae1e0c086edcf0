// Timing, with a second thread in the process.
#include <tenon/core/seconds_since.h>
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
      : source(options.capacity_bytes.value_or(0)), blocks(std::max<std::uint32_t>(1, trace.slot_count)) {
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

/// Everything but allocate and free: rare.
[[gnu::noinline]] void other_event(Candidate& candidate, const Trace& trace, const TraceEvent& event) {
  Block& block = candidate.blocks[event.slot];
  switch (event.kind) {
    case EventKind::kUse:
      if (block.data != nullptr && trace.streams[event.stream] != block.request.stream.id)
        candidate.allocator->record_use(block, {trace.streams[event.stream]});
      break;
    case EventKind::kEmptyCache:
      candidate.allocator->trim(0);
      break;
    case EventKind::kFreeCompleted:
      candidate.source.complete(event.slot);
      break;
    default:
      break;
  }
}

/// Returns the seconds that all events took.
double run_pass(Candidate& candidate, const Trace& trace) {
  Allocator& allocator = *candidate.allocator;
  Block* const blocks = candidate.blocks.data();
  const std::uint64_t* const streams = trace.streams.data();
  const TraceEvent* next = trace.events.data();
  const TraceEvent* const end = next + trace.events.size();
  const auto start = Clock::now();
  while (next != end) {
    try {
      for (; next != end; ++next) {
        if (next->kind == EventKind::kAllocate) {
          blocks[next->slot] = allocator.allocate({.bytes = next->bytes, .stream = {streams[next->stream]}});
        } else if (next->kind == EventKind::kFree) {
          const Block& block = blocks[next->slot];
          if (block.data == nullptr) continue;
          if (next->deferred) allocator.record_use(block, ReplaySource::waiting_stream(next->slot));
          allocator.deallocate(block, block.request.stream);
        } else {
          other_event(candidate, trace, *next);
        }
      }
    } catch (const OutOfMemory&) {
      blocks[next->slot] = {};
      ++next;
    }
  }
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
  Allocator& allocator = *candidate.allocator;
  const double scale = ns_per_tick();
  std::vector<float> allocate_ns;
  std::vector<float> free_ns;
  allocate_ns.reserve(trace.facts.allocations);
  free_ns.reserve(trace.facts.frees);
  for (const TraceEvent& event : trace.events) {
    Block& block = candidate.blocks[event.slot];
    if (event.kind == EventKind::kAllocate) {
      const std::uint64_t start = ticks();
      try {
        block = allocator.allocate({.bytes = event.bytes, .stream = {trace.streams[event.stream]}});
      } catch (const OutOfMemory&) {
        block = {};
        continue;
      }
      allocate_ns.push_back(static_cast<float>(static_cast<double>(ticks() - start) * scale));
    } else if (event.kind == EventKind::kFree) {
      if (block.data == nullptr) continue;
      if (event.deferred) allocator.record_use(block, ReplaySource::waiting_stream(event.slot));
      const std::uint64_t start = ticks();
      allocator.deallocate(block, block.request.stream);
      free_ns.push_back(static_cast<float>(static_cast<double>(ticks() - start) * scale));
    } else {
      other_event(candidate, trace, event);
    }
  }
  row.allocate_ns = latency_of(allocate_ns);
  row.free_ns = latency_of(free_ns);
  row.clock_ns = clock_cost_ns();
}

}  // namespace tenon::replay
