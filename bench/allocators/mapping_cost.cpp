// What an allocator's calls to a device cost in the first step of a program and in later ones, on a device whose every
// call takes 30 microseconds: milliseconds of the device's own time. Nothing is clocked, so all figures are exact.
//
//   tenon_mapping_cost [-a SPEC]... HISTORY...
#include <tenon/core/error.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/runtime/allocator_spec.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tenon;

constexpr double kCallUs = 30;

/// Counts every call that takes or gives memory or addresses.
class CountingSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  std::int64_t calls = 0;

  void* acquire(std::size_t bytes) override { return ++calls, upstream_.acquire(bytes); }
  void release(void* address, std::size_t bytes) noexcept override { ++calls, upstream_.release(address, bytes); }
  void* reserve(std::size_t bytes) override { return ++calls, upstream_.reserve(bytes); }
  void unreserve(void* address, std::size_t bytes) noexcept override { ++calls, upstream_.unreserve(address, bytes); }
  Physical create(std::size_t bytes) override { return ++calls, upstream_.create(bytes); }
  void destroy(Physical physical, std::size_t bytes) noexcept override { ++calls, upstream_.destroy(physical, bytes); }
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    ++calls, upstream_.map(address, bytes, physical, offset);
  }
  void unmap(void* address, std::size_t bytes) noexcept override { ++calls, upstream_.unmap(address, bytes); }
};

/// What comes before the first step, as parameters do, belongs to it; what comes after the last one, to that.
std::vector<std::int64_t> calls_by_step(const replay::Trace& trace, const std::string& spec) {
  AddressOnlySource device({.capacity_bytes = std::size_t{80} << 30});
  CountingSource source(device);
  const StackConfig policy = allocator_from_spec(spec);
  const auto allocator = policy.policy.create({.source = source, .options = policy.options});
  std::vector<Block> blocks(std::max<std::uint32_t>(1, trace.slot_count));
  std::vector<std::int64_t> calls;
  std::int64_t counted = 0;
  int steps = 0;
  const auto close = [&] {
    calls.push_back(source.calls - counted);
    counted = source.calls;
  };
  for (const replay::TraceEvent& event : trace.events) {
    Block& block = blocks[event.slot];
    switch (event.kind) {
      case replay::EventKind::kAllocate:
        block = allocator->allocate({.bytes = event.bytes, .stream = {trace.streams[event.stream]}});
        break;
      case replay::EventKind::kFree:
        allocator->deallocate(block, block.request.stream);
        break;
      case replay::EventKind::kUse:
        allocator->record_use(block, {trace.streams[event.stream]});
        break;
      case replay::EventKind::kEmptyCache:
        allocator->trim(0);
        break;
      case replay::EventKind::kMark:
        if (trace.marks[event.bytes].starts_with("step") && ++steps > 1) close();
        break;
      case replay::EventKind::kFreeCompleted:
        break;
    }
  }
  close();
  return calls;
}

/// The most of any step from the third to the last but one, which alone begin and end with a warm cache; -1 where there
/// are none.
std::int64_t warm(const std::vector<std::int64_t>& calls) {
  if (calls.size() < 4) return -1;
  return *std::max_element(calls.begin() + 2, calls.end() - 1);
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> specs, files;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "-a" && i + 1 < argc)
      specs.emplace_back(argv[++i]);
    else
      files.emplace_back(argv[i]);
  }
  if (specs.empty()) specs = {"expandable", "caching", "mortise", "stitching"};
  if (files.empty()) throw Error("usage: tenon_mapping_cost [-a SPEC]... HISTORY...");
  std::string title = "| history |", rule = "|---|";
  for (const char* const step : {"first step", "warm step"}) {
    for (const std::string& spec : specs) {
      title += std::string(" ") + step + ", `" + spec + "` |";
      rule += "---|";
    }
  }
  std::printf("%s\n%s\n", title.c_str(), rule.c_str());
  for (const std::string& file : files) {
    for (const replay::Trace& trace : replay::read_traces(file)) {
      std::vector<std::vector<std::int64_t>> calls;
      for (const std::string& spec : specs) calls.push_back(calls_by_step(trace, spec));
      const std::string name = std::filesystem::path(file).filename().string();
      std::printf("| %s |", name.substr(0, name.find('.')).c_str());
      for (const auto& of_spec : calls) std::printf(" %.2f |", static_cast<double>(of_spec.front()) * kCallUs / 1000);
      for (const auto& of_spec : calls) {
        if (warm(of_spec) < 0)
          std::printf(" |");
        else
          std::printf(" %.2f |", static_cast<double>(warm(of_spec)) * kCallUs / 1000);
      }
      std::printf("\n");
    }
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
