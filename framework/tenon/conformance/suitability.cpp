// Whether the kit can test an allocator with given options: what its checks ask of their devices, on one that does.
// Declared in conformance.h.
#include <tenon/conformance/conformance.h>
#include <tenon/conformance/history_runner.h>
#include <tenon/conformance/process/isolation.h>

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>

#include <fmt/format.h>

namespace tenon::conformance {

namespace {

constexpr std::string_view kUntestable = "untestable";

/// Blocks that must fit at once on a device; checks with a fixed plot count on them.
struct Need {
  std::size_t capacity, bytes;
  int blocks;
};
constexpr Need kNeeds[] = {{128 * MiB, 64 * MiB, 1}, {256 * MiB, 30 * MiB, 3}, {1 * GiB, 512 * KiB, 60}};

Finding serves_what_the_checks_need(const Subject& subject) {
  for (const Need& need : kNeeds) {
    try {
      AddressOnlySource device({.device = "conformance", .capacity_bytes = need.capacity});
      const auto stack = AllocatorStack::make(device, subject.config());
      for (int i = 0; i < need.blocks; ++i) static_cast<void>(stack->allocate({.bytes = need.bytes}));
    } catch (const OutOfMemory&) {
      return {kUntestable, fmt::format("{} x {} do not fit on a device of {}", need.blocks, format_bytes(need.bytes),
                                       format_bytes(need.capacity))};
    } catch (const ConfigError& error) {
      return {kUntestable, error.what()};
    }
  }
  return {};
}

}  // namespace

std::string why_untestable(const AllocatorInfo& info, const Options& options) {
  Journal journal;
  const Subject subject{info, options};
  const Finding finding = run_in_child([&] { return serves_what_the_checks_need(subject); }, journal,
                                       {.deadline_seconds = 3, .call_seconds = 3, .is_trial = true});
  return finding.cause == kUntestable ? finding.text : std::string();
}

}  // namespace tenon::conformance
