// What an allocator's calls to a device cost in the first step of a program and in later ones: milliseconds of the
// device's own time, on one whose every call takes 30 microseconds, and on one that takes what an H100 does for its
// pages. Nothing is clocked, so all figures are exact. With --device the memory is that of the device, and its calls
// are clocked.
//
//   first   with what comes before it, as parameters do
//   warm    from the third on, a step that takes and frees just what a step before it did, in the same order
//   new     from the third on, any other: another length, other pictures
//
//   tenon_mapping_cost [--device DEVICE] [-a SPEC]... HISTORY...
#include "../history_arguments.h"

#include <tenon/core/error.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/call_cost.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/runtime/allocator_spec.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace tenon;

constexpr CallCosts kByCall = CallCosts::of_each_call(30);

/// What calls took: by two models and, where the device is a real one, on the wall.
struct Cost {
  double by_call_us = 0, by_page_us = 0, clocked_us = 0;
};

/// Counts and clocks every call that takes or gives memory or addresses.
class CountingSource final : public ForwardingSource {
 private:
  using Clock = std::chrono::steady_clock;
  struct Clocked {
    Cost& cost;
    Clock::time_point start = Clock::now();
    ~Clocked() { cost.clocked_us += std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }
  };
  Clocked call(CallCost CallCosts::*kind, std::size_t bytes) {
    cost.by_call_us += (kByCall.*kind).us(bytes);
    cost.by_page_us += (kH100CallCosts.*kind).us(bytes);
    return {cost};
  }

 public:
  using ForwardingSource::ForwardingSource;
  Cost cost;

  void* acquire(std::size_t bytes) override {
    const Clocked clocked = call(&CallCosts::acquire, bytes);
    return upstream_.acquire(bytes);
  }
  void release(void* address, std::size_t bytes) noexcept override {
    const Clocked clocked = call(&CallCosts::release, bytes);
    upstream_.release(address, bytes);
  }
  void* reserve(std::size_t bytes) override {
    const Clocked clocked = call(&CallCosts::reserve, bytes);
    return upstream_.reserve(bytes);
  }
  void unreserve(void* address, std::size_t bytes) noexcept override {
    const Clocked clocked = call(&CallCosts::unreserve, bytes);
    upstream_.unreserve(address, bytes);
  }
  Physical create(std::size_t bytes) override {
    const Clocked clocked = call(&CallCosts::create, bytes);
    return upstream_.create(bytes);
  }
  void destroy(Physical physical, std::size_t bytes) noexcept override {
    const Clocked clocked = call(&CallCosts::destroy, bytes);
    upstream_.destroy(physical, bytes);
  }
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    const Clocked clocked = call(&CallCosts::map, bytes);
    upstream_.map(address, bytes, physical, offset);
  }
  void unmap(void* address, std::size_t bytes) noexcept override {
    const Clocked clocked = call(&CallCosts::unmap, bytes);
    upstream_.unmap(address, bytes);
  }
};

struct Step {
  Cost cost;                                 ///< of the device's own time
  std::uint64_t asked = 0xcbf29ce484222325;  ///< a hash of the sizes that it took and freed, in their order
  void add(std::uint64_t event) { asked = (asked ^ event) * 0x100000001b3; }
};

/// What comes before the first step, as parameters do, belongs to it; what comes after the last one, to that.
std::vector<Step> steps_of(const replay::Trace& trace, const std::string& spec, MemorySource* real) {
  AddressOnlySource model({.capacity_bytes = std::size_t{80} << 30});
  CountingSource source(real != nullptr ? *real : model);
  const StackConfig policy = allocator_from_spec(spec);
  const auto allocator = policy.policy.create({.source = source, .options = policy.options});
  std::size_t allocation = 0;
  std::vector<Block> blocks(std::max<std::uint32_t>(1, trace.slot_count));
  std::vector<Step> steps(1);
  bool has_begun = false;
  const auto close = [&] { steps.back().cost = std::exchange(source.cost, {}); };
  for (const replay::TraceEvent& event : trace.events) {
    Block& block = blocks[event.slot];
    switch (event.kind) {
      case replay::EventKind::kAllocate:
        block = allocator->allocate(
            {.bytes = event.bytes,
             .stream = {trace.streams[event.stream]},
             .purpose = trace.columns.purposes.empty() ? Purpose::kOther : trace.columns.purposes[allocation]});
        ++allocation;
        steps.back().add(event.bytes << 1);
        break;
      case replay::EventKind::kFree:
        steps.back().add(block.request.bytes << 1 | 1);
        allocator->deallocate(block, block.request.stream);
        break;
      case replay::EventKind::kUse:
        allocator->record_use(block, {trace.streams[event.stream]});
        break;
      case replay::EventKind::kEmptyCache:
        allocator->trim(0);
        break;
      case replay::EventKind::kMark:
        if (!trace.marks[event.bytes].starts_with("step") || !std::exchange(has_begun, true)) break;
        close();
        steps.emplace_back();
        break;
      case replay::EventKind::kFreeCompleted:
        break;
    }
  }
  close();
  return steps;
}

/// The dearest step from the third to the last but one (that one ends the program too), of those that a step
/// before them was like, or of the others; none: there is no such step.
std::optional<double> dearest(const std::vector<Step>& steps, bool is_warm, double Cost::*of) {
  std::optional<double> most;
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    if (step - steps.begin() < 2 || steps.end() - step < 2) continue;
    const bool repeats = std::any_of(steps.begin(), step, [&](const Step& s) { return s.asked == step->asked; });
    if (repeats == is_warm) most = std::max(most.value_or(0), step->cost.*of);
  }
  return most;
}

struct Measured {
  std::string name;
  std::vector<std::vector<Step>> steps;  ///< under each allocator
};

/// Milliseconds, a line for each history.
void print_table(const std::vector<Measured>& histories, const std::vector<std::string>& specs, double Cost::*of) {
  std::string title = "| history |", rule = "|---|";
  for (const char* const step : {"first", "warm", "new"}) {
    for (const std::string& spec : specs) {
      title += std::string(" ") + step + ", `" + spec + "` |";
      rule += "---|";
    }
  }
  std::printf("%s\n%s\n", title.c_str(), rule.c_str());
  const auto print = [](std::optional<double> us) { std::printf(us ? " %.2f |" : " |", us.value_or(0) / 1000); };
  for (const Measured& history : histories) {
    std::printf("| %s |", history.name.c_str());
    for (const auto& steps : history.steps) print(steps.front().cost.*of);
    for (const bool is_warm : {true, false})
      for (const auto& steps : history.steps) print(dearest(steps, is_warm, of));
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  MemorySource* real = nullptr;
  if (argc > 2 && std::string_view(argv[1]) == "--device") {
    real = &device_state(Device(argv[2])).driver().memory();
    argv[2] = argv[0];
    argv += 2;
    argc -= 2;
  }
  const auto [specs, files] =
      bench::read_history_arguments(argc, argv, {"expandable", "caching", "mortise", "stitching"});
  std::vector<Measured> histories;
  for (const std::string& file : files) {
    for (const replay::Trace& trace : replay::read_traces(file, {.with_columns = true})) {
      Measured& history = histories.emplace_back(Measured{bench::history_name(file), {}});
      for (const std::string& spec : specs) history.steps.push_back(steps_of(trace, spec, real));
    }
  }
  if (real != nullptr) {
    print_table(histories, specs, &Cost::clocked_us);
  } else {
    std::printf("30 us for each call:\n\n");
    print_table(histories, specs, &Cost::by_call_us);
    std::printf("\nAn H100's calls, by pages:\n\n");
    print_table(histories, specs, &Cost::by_page_us);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
