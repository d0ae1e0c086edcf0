// The patterns of the peers' published figures, and recorded histories.
#include <tenon/measure/bench/slice_clock.h>
#include <tenon/measure/bench/workload.h>

#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/replay/engine/replay_source.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <exception>
#include <latch>
#include <optional>
#include <random>
#include <thread>

namespace tenon::measure {

namespace {

/// Log-uniform from 2^low to 2^high bytes.
std::vector<std::size_t> sizes(std::size_t count, unsigned seed, double low = 9, double high = 26) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(low, high);
  std::vector<std::size_t> result(count);
  for (std::size_t& size : result) size = static_cast<std::size_t>(std::exp2(exponent(random)));
  return result;
}

/// An allocator in service on a device of its own.
class OnAddresses : public Workload {
 public:
  explicit OnAddresses(const StackConfig& allocator) : stack_(AllocatorStack::make(source_, allocator)) {}

 protected:
  Block allocate(std::size_t bytes, std::uint64_t stream = 0) {
    return stack_->allocate({.bytes = bytes, .stream = {stream}});
  }
  template <class Body>
  static Timed timed(std::uint64_t pairs, const Body& body) {
    const SliceClock clock;
    body();
    return {clock.ns(), pairs};
  }

  AddressOnlySource source_;
  std::shared_ptr<AllocatorStack> stack_;
};

class Hot : public OnAddresses {
 public:
  Hot(const StackConfig& allocator, std::size_t bytes) : OnAddresses(allocator), bytes_(bytes) {}
  Timed run(std::uint64_t pairs) override {
    return timed(pairs, [&] {
      for (std::uint64_t i = 0; i < pairs; ++i) stack_->deallocate(allocate(bytes_));
    });
  }

 private:
  const std::size_t bytes_;
};

class Lifo final : public OnAddresses {
 public:
  Lifo(const StackConfig& allocator, std::size_t count)
      : OnAddresses(allocator), wanted_(sizes(count, 1)), blocks_(count) {}
  Timed run(std::uint64_t pairs) override {
    const std::uint64_t passes = (pairs + wanted_.size() - 1) / wanted_.size();
    return timed(passes * wanted_.size(), [&] {
      for (std::uint64_t pass = 0; pass < passes; ++pass) {
        for (std::size_t i = 0; i < wanted_.size(); ++i) blocks_[i] = allocate(wanted_[i]);
        for (std::size_t i = wanted_.size(); i-- > 0;) stack_->deallocate(blocks_[i]);
      }
    });
  }

 private:
  const std::vector<std::size_t> wanted_;
  std::vector<Block> blocks_;
};

class Random final : public OnAddresses {
 public:
  Random(const StackConfig& allocator, std::size_t count)
      : OnAddresses(allocator), wanted_(sizes(kSteps, 2)), victims_(kSteps), blocks_(count) {
    std::mt19937 random(3);
    for (std::uint32_t& victim : victims_) victim = static_cast<std::uint32_t>(random() % count);
    for (std::size_t i = 0; i < count; ++i) blocks_[i] = allocate(wanted_[i % kSteps]);
    replace(20 * count);  // to the steady state
  }
  Timed run(std::uint64_t pairs) override {
    return timed(pairs, [&] { replace(pairs); });
  }
  /// Until most of the blocks have been touched, which a slice of many blocks would not do.
  void warm(std::uint64_t pairs) override { replace(std::max<std::uint64_t>(pairs, std::min(blocks_.size(), kSteps))); }

 private:
  static constexpr std::size_t kSteps = 1 << 16;
  void replace(std::uint64_t pairs) {
    for (std::uint64_t n = 0; n < pairs; ++n) {
      const std::size_t i = step_++ % kSteps;
      Block& block = blocks_[victims_[i]];
      stack_->deallocate(block);
      block = {};
      block = allocate(wanted_[i]);
    }
  }
  const std::vector<std::size_t> wanted_;
  std::vector<std::uint32_t> victims_;
  std::vector<Block> blocks_;
  std::size_t step_ = 0;
};

/// The cached blocks have no free neighbour: live ones stand between them.
class Cached final : public Hot {
 public:
  Cached(const StackConfig& allocator, std::size_t count) : Hot(allocator, 300 * KiB) {
    std::vector<Block> freed;
    for (const std::size_t bytes : sizes(count, 5, 9, 22)) {
      freed.push_back(allocate(bytes));
      allocate(512);
      allocate(1 * MiB + 512);
    }
    for (const Block& block : freed) stack_->deallocate(block);
  }
};

class Streams final : public OnAddresses {
 public:
  Streams(const StackConfig& allocator, std::uint64_t count) : OnAddresses(allocator), count_(count) {}
  Timed run(std::uint64_t pairs) override {
    return timed(pairs, [&] {
      for (std::uint64_t i = 0; i < pairs; ++i) {
        const std::uint64_t stream = next_;
        next_ = stream % count_ + 1;
        const Block block = allocate(4 * KiB, stream);
        stack_->record_use(block, {next_});
        stack_->deallocate(block);
      }
    });
  }

 private:
  const std::uint64_t count_;
  std::uint64_t next_ = 1;
};

/// Wall-clock time from the moment when all of them may go to that when the last is done: pairs of one thread.
class Threads final : public OnAddresses {
 public:
  Threads(const StackConfig& allocator, std::size_t count) : OnAddresses(allocator), count_(count) {}
  Timed run(std::uint64_t pairs) override {
    std::latch ready(static_cast<std::ptrdiff_t>(count_) + 1), go(1);
    std::vector<std::exception_ptr> problems(count_);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < count_; ++t) {
      threads.emplace_back([&, t] {
        ready.count_down();
        go.wait();
        try {
          for (std::uint64_t i = 0; i < pairs; ++i) stack_->deallocate(allocate(4 * KiB, t + 1));
        } catch (...) {
          problems[t] = std::current_exception();
        }
      });
    }
    ready.arrive_and_wait();
    const auto start = std::chrono::steady_clock::now();
    go.count_down();
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
    for (const std::exception_ptr& problem : problems) {
      if (problem) std::rethrow_exception(problem);
    }
    return {passed.count(), pairs};
  }

 private:
  const std::size_t count_;
};

/// Each pass is over a new allocator, which is made and torn down outside of the measured time.
class Recorded final : public Workload {
 public:
  Recorded(const StackConfig& allocator, const replay::Trace& trace)
      : allocator_(allocator), trace_(trace), blocks_(std::max<std::uint32_t>(1, trace.slot_count)) {}
  Timed run(std::uint64_t pairs) override {
    Timed all;
    do {
      const Timed pass = run_once();
      all.ns += pass.ns;
      all.pairs += pass.pairs;
    } while (all.pairs < pairs && trace_.facts.allocations != 0);
    return all;
  }
  void warm(std::uint64_t) override {}  // each pass begins with a new allocator

 private:
  Timed run_once() {
    replay::ReplaySource source(0);
    const std::shared_ptr<AllocatorStack> stack = AllocatorStack::make(source, allocator_);
    std::ranges::fill(blocks_, Block{});
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
};

class Harness final : public Allocator {
 public:
  Block allocate(const Request& request) override {
    const std::uintptr_t address = next_.load(std::memory_order_relaxed) + 512;
    next_.store(address, std::memory_order_relaxed);
    return {.data = reinterpret_cast<void*>(address), .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
  bool is_thread_safe() const override { return true; }

 private:
  std::atomic<std::uintptr_t> next_{1 << 20};
};

using Made = std::unique_ptr<Workload>;

/// A form of names: "lifo/N", where N is at most `most`.
struct Form {
  const char* name;
  const char* argument;
  const char* help;
  std::uint64_t most;
  Made (*make)(const StackConfig& allocator, std::uint64_t number);
};

template <class W>
Made make(const StackConfig& allocator, std::uint64_t number) {
  return std::make_unique<W>(allocator, number);
}

constexpr Form kForms[] = {
    {"hot", "SIZE", "one block, allocate and free", 1 * TiB, &make<Hot>},
    {"lifo", "N", "N allocations, freed in reverse", 1'000'000, &make<Lifo>},
    {"random", "N", "of N live blocks a random one is replaced", 1'000'000, &make<Random>},
    {"cached", "N", "hot, with N cached blocks of other sizes around", 1'000'000, &make<Cached>},
    {"streams", "N", "hot on N streams in turn, each block used on the next one too", 1024, &make<Streams>},
    {"threads", "N", "hot on N threads at once, each on a stream of its own", 256, &make<Threads>},
};

/// The form and the number of "lifo/1000". Throws ConfigError.
std::pair<const Form*, std::uint64_t> parse(std::string_view name) {
  const std::size_t slash = name.find('/');
  const std::string_view word = name.substr(0, slash);
  const std::string argument(slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1));
  std::vector<std::string> forms;
  for (const Form& form : kForms) {
    forms.push_back(fmt::format("{}/{}", form.name, form.argument));
    if (word != form.name) continue;
    const std::optional<std::size_t> number = try_parse_size(argument);
    const bool is_count = argument.find_first_not_of("0123456789") == std::string::npos;
    if (!number || (!is_count && form.argument != std::string_view("SIZE")))
      throw ConfigError(
          fmt::format("workload \"{}\": expected {}, as in {}", name, forms.back(),
                      form.argument == std::string_view("SIZE") ? "hot/4KiB" : fmt::format("{}/1000", word)));
    if (*number < 1 || *number > form.most)
      throw ConfigError(fmt::format("workload \"{}\": {} is from 1 to {}", name, form.argument, form.most));
    return {&form, *number};
  }
  throw ConfigError(fmt::format("unknown workload \"{}\"; there are {}; a recorded history is given by --history", name,
                                fmt::join(forms, ", ")));
}

}  // namespace

Workload::~Workload() = default;

std::vector<std::string> default_workloads() {
  return {"hot/4KiB", "hot/64MiB", "lifo/1000", "random/1000", "random/10000", "cached/1000", "streams/4"};
}

std::string workload_help() {
  std::string text;
  for (const Form& form : kForms)
    text += fmt::format("  {:<14}{}\n", fmt::format("{}/{}", form.name, form.argument), form.help);
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
  config.policy.name = "harness";
  config.policy.create = [](const AllocatorContext&) { return std::make_unique<Harness>(); };
  return config;
}

}  // namespace tenon::measure
