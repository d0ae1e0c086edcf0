// The user's memory functions: each finds the device's allocator and asks it.
#include <tenon/core/error.h>
#include <tenon/device/memory_api.h>
#include <tenon/device/memory_summary.h>
#include <tenon/memory/history/history.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon {

namespace {

std::size_t bytes(std::int64_t value) { return value < 0 ? 0 : static_cast<std::size_t>(value); }

AllocatorStack& allocator_of(Device device) { return device_state(device).allocator(); }

}  // namespace

std::size_t memory_allocated(Device device) { return bytes(allocator_of(device).stats().allocated_bytes.current); }
std::size_t max_memory_allocated(Device device) { return bytes(allocator_of(device).stats().allocated_bytes.peak); }
std::size_t memory_reserved(Device device) { return bytes(allocator_of(device).stats().reserved_bytes.current); }
std::size_t max_memory_reserved(Device device) { return bytes(allocator_of(device).stats().reserved_bytes.peak); }

MemoryStatsTable memory_stats(Device device) { return memory_stats_table(allocator_of(device).stats()); }

std::string memory_summary(Device device, bool abbreviated) {
  DeviceState& state = device_state(device);
  const MemoryStatsTable stats = memory_stats_table(state.allocator().stats());
  if (state.device().is_cuda()) return memory_summary_of(stats, state.device().index(), abbreviated);
  const std::string title = fmt::format("memory summary of {}", state.device().str());
  return memory_summary_text(stats, {fmt::format("|{:^75}|\n", title), "OOMs", "allocation retries"}, abbreviated);
}

void reset_peak_memory_stats(Device device) { allocator_of(device).reset_peak_stats(); }
void reset_accumulated_memory_stats(Device device) { allocator_of(device).reset_accumulated_stats(); }

std::size_t empty_cache(Device device) { return allocator_of(device).trim(0); }

void set_per_process_memory_fraction(double fraction, Device device) {
  DeviceState& state = device_state(device);
  if (!(fraction >= 0.0 && fraction <= 1.0)) {
    throw Error(fmt::format("a memory fraction of {} on {}: it must be from 0 to 1", fraction, state.device().str()));
  }
  const std::size_t capacity = state.driver().memory().usage().total_bytes;
  if (capacity == 0 && fraction < 1.0) {
    throw Error(fmt::format("{} has no capacity to take a fraction of; layer 'limit' sets a limit in bytes",
                            state.device().str()));
  }
  // As PyTorch since 2.10: 1.0 means no limit, anything below is rounded to the nearest byte. A limit of 0 bytes would
  // read as "none".
  const auto limit = static_cast<std::size_t>(std::llround(fraction * static_cast<double>(capacity)));
  state.set_memory_limit(fraction == 1.0 ? 0 : std::max<std::size_t>(limit, 1));
}

double get_per_process_memory_fraction(Device device) {
  DeviceState& state = device_state(device);
  const std::size_t limit = state.memory_limit();
  const std::size_t capacity = state.driver().memory().usage().total_bytes;
  return limit == 0 || capacity == 0 ? 1.0 : static_cast<double>(limit) / static_cast<double>(capacity);
}

SourceUsage mem_get_info(Device device) { return device_state(device).driver().memory().usage(); }

std::vector<PurposeUsage> memory_by_purpose(Device device) {
  const MemoryStats stats = allocator_of(device).stats();
  std::vector<PurposeUsage> usage;
  for (std::size_t i = 0; i < kPurposeCount; ++i)
    usage.push_back({static_cast<Purpose>(i), stats.requested_by_purpose[i], stats.requested_by_element[i]});
  return usage;
}

std::vector<LabelUsage> memory_by_label(Device device) { return allocator_of(device).usage_by_label(); }

void record_memory_history(const HistorySettings& settings, Device device) {
  device_state(device).history().start(settings);
}

void stop_memory_history(Device device) { device_state(device).history().stop(); }

MemorySnapshot memory_snapshot(Device device) {
  DeviceState& state = device_state(device);
  MemorySnapshot snapshot = take_snapshot(state.device(), state.allocator(), &state.history());
  // As PyTorch: a snapshot is an event too, seen by the next one.
  if (state.history().recording()) {
    state.history().record({.action = HistoryAction::kSnapshot, .bytes = snapshot.active_bytes()});
  }
  return snapshot;
}

std::shared_ptr<AllocatorStack> swap_allocator(const StackConfig& config, Device device) {
  DeviceState& state = device_state(device);
  return state.swap_allocator(AllocatorStack::make(state.driver().memory(), config));
}

AllocatorGuard::AllocatorGuard(Device device, std::shared_ptr<AllocatorStack> allocator)
    : state_(device_state(device)), previous_(state_.swap_allocator(std::move(allocator))) {}

AllocatorGuard::~AllocatorGuard() {
  if (previous_ != nullptr) state_.swap_allocator(std::move(previous_));
}

std::unique_ptr<MemPool> make_mem_pool(Device device, const PoolOptions& options) {
  return std::make_unique<MemPool>(device_state(device).shared_allocator(), options);
}

}  // namespace tenon
