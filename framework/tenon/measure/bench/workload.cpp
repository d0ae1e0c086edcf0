// Names of workloads, recorded histories, and the harness.
#include <tenon/measure/bench/pair_count.h>
#include <tenon/measure/bench/patterns.h>
#include <tenon/measure/bench/slice_clock.h>
#include <tenon/measure/bench/workload.h>

#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/core/units.h>
#include <tenon/replay/engine/replay_source.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <optional>

namespace tenon::measure {

namespace {

/// Each pass is over a new allocator, which is made and torn down outside of the measured time.
class Recorded final : public Workload {
 public:
  Recorded(const StackConfig& allocator, const replay::Trace& trace)
      : allocator_(allocator), trace_(trace), blocks_(std::max<std::uint32_t>(1, trace.slot_count)) {}
  std::uint64_t repeat(std::uint64_t pairs) override { return run(pairs).pairs; }
  Timed run(std::uint64_t pairs) override {
    Timed all;
    do {
      const Timed pass = run_once();
      all.ns += pass.ns;
      all.pairs += pass.pairs;
    } while (all.pairs < pairs && trace_.facts.allocations != 0);
    return all;
  }
  /// A history that is longer than a slice is cold wherever it is read, as in a replay.
  void warm_up(std::uint64_t pairs) override {
    if (pairs > trace_.facts.allocations) run_once();
  }

 private:
  Timed run_once() {
    replay::ReplaySource source(0);
    const std::shared_ptr<AllocatorStack> stack = AllocatorStack::make(source, allocator_);
    std::ranges::fill(blocks_, Block{});
    bench_pairs().plan(trace_.facts.allocations);
    const SliceClock clock;
    for (const replay::TraceEvent& event : trace_.events) apply(event, *stack, source);
    const Timed timed{clock.ns(), trace_.facts.allocations};
    for (const Block& block : blocks_) stack->deallocate(block);
    return timed;
  }
  void apply(const replay::TraceEvent& event, AllocatorStack& stack, replay::ReplaySource& source) {
    Block& block = blocks_[event.slot];
    switch (event.kind) {
      case replay::EventKind::kAllocate:
        block = stack.allocate({.bytes = event.bytes, .stream = {trace_.streams[event.stream]}});
        count_.one();
        break;
      case replay::EventKind::kFree:
        if (event.deferred) stack.record_use(block, replay::ReplaySource::waiting_stream(event.slot));
        stack.deallocate(block);
        block = {};
        break;
      case replay::EventKind::kUse:
        stack.record_use(block, {trace_.streams[event.stream]});
        break;
      case replay::EventKind::kEmptyCache:
        stack.trim();
        break;
      case replay::EventKind::kFreeCompleted:
        source.complete(event.slot);
        break;
      case replay::EventKind::kMark:
        break;
    }
  }

  const StackConfig& allocator_;
  const replay::Trace& trace_;
  std::vector<Block> blocks_;
  PairCount& count_ = bench_pairs().of_thread(0);
};

/// Threads on streams of their own do not meet.
class Harness final : public Allocator {
 public:
  Block allocate(const Request& request) override {
    Next& next = next_[request.stream.id % kStreams];
    const std::uintptr_t address = next.address.load(std::memory_order_relaxed) + 512;
    next.address.store(address, std::memory_order_relaxed);
    return {.data = reinterpret_cast<void*>(address), .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
  bool is_thread_safe() const override { return true; }

 private:
  static constexpr std::size_t kStreams = 64;
  struct alignas(64) Next {
    std::atomic<std::uintptr_t> address{1 << 20};
  };
  std::array<Next, kStreams> next_;
};

/// The form and the number of "lifo/1000". Throws ConfigError.
std::pair<const PatternForm*, std::uint64_t> parse(std::string_view name) {
  const std::size_t slash = name.find('/');
  const std::string_view word = name.substr(0, slash);
  const std::string argument(slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1));
  std::vector<std::string> forms;
  for (const PatternForm& form : pattern_forms()) {
    forms.push_back(fmt::format("{}/{}", form.name, form.argument));
    if (word != form.name) continue;
    const std::optional<std::size_t> number = try_parse_size(argument);
    const bool is_count = argument.find_first_not_of("0123456789") == std::string::npos;
    if (!number || (!is_count && form.argument != std::string_view("SIZE")))
      throw ConfigError(fmt::format("workload \"{}\": expected {}, as in {}", name, forms.back(),
                                    form.argument == std::string_view("SIZE")
                                        ? "hot/4KiB"
                                        : fmt::format("{}/{}", word, form.most < 1000 ? 2 : 1000)));
    if (*number < 1 || *number > form.most)
      throw ConfigError(fmt::format("workload \"{}\": {} is from 1 to {}", name, form.argument, form.most));
    return {&form, *number};
  }
  throw ConfigError(fmt::format("unknown workload \"{}\"; there are {}; a recorded history is given by --history", name,
                                fmt::join(forms, ", ")));
}

}  // namespace

Workload::~Workload() = default;

Timed Workload::run(std::uint64_t pairs) {
  const SliceClock clock;
  const std::uint64_t done = repeat(pairs);
  return {clock.ns(), done};
}

void Workload::warm_up(std::uint64_t pairs) { repeat(std::max(pairs / 4 + 1, pairs_to_warm_up())); }

std::vector<std::string> default_workloads() {
  return {"hot/4KiB", "hot/64MiB", "lifo/1000", "random/1000", "random/10000", "cached/1000", "streams/4"};
}

std::string workload_help() {
  std::string text;
  for (const PatternForm& form : pattern_forms())
    text += fmt::format("  {:<18}{}\n", fmt::format("{}/{}", form.name, form.argument), form.help);
  return text;
}

void check_workload(std::string_view name) { parse(name); }

std::unique_ptr<Workload> make_workload(const WorkloadSpec& spec, const StackConfig& allocator) {
  if (spec.trace != nullptr) return std::make_unique<Recorded>(allocator, *spec.trace);
  const auto [form, number] = parse(spec.name);
  return form->make(allocator, number);
}

StackConfig harness_allocator() {
  StackConfig config;
  config.policy.name = kHarness;
  config.policy.create = [](const AllocatorContext&) { return std::make_unique<Harness>(); };
  return config;
}

}  // namespace tenon::measure
