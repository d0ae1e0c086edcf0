// Page-locked host memory of a device: its allocator, and its figures under PyTorch's names. Declared in memory_api.h.
#include <tenon/core/error.h>
#include <tenon/device/memory_api.h>

#include <fmt/format.h>

namespace tenon {

std::shared_ptr<AllocatorStack> pinned_host_allocator(Device device) {
  DeviceState& state = device_state(device);
  if (auto pinned = state.pinned_host_allocator()) return pinned;
  throw Error(fmt::format(
      "{} has no page-locked host memory: it is for devices that copy by themselves, cuda and simulated for example",
      state.device().str()));
}

MemoryStatsTable host_memory_stats(Device device) {
  const MemoryStats stats = pinned_host_allocator(device)->stats();
  MemoryStatsTable table;
  const auto put = [&](const std::string& key, const Stat& stat) {
    table[key + ".current"] = stat.current;
    table[key + ".peak"] = stat.peak;
    table[key + ".allocated"] = stat.allocated;
    table[key + ".freed"] = stat.freed;
  };
  put("allocations", stats.segments);
  put("allocated_bytes", stats.reserved_bytes);
  put("active_requests", stats.allocations);
  put("active_bytes", stats.allocated_bytes);
  table["num_host_alloc"] = stats.device_allocations;
  table["num_host_free"] = stats.device_frees;
  return table;
}

void reset_peak_host_memory_stats(Device device) { pinned_host_allocator(device)->reset_peak_stats(); }

void reset_accumulated_host_memory_stats(Device device) { pinned_host_allocator(device)->reset_accumulated_stats(); }

std::size_t empty_host_cache(Device device) { return pinned_host_allocator(device)->trim(0); }

}  // namespace tenon
