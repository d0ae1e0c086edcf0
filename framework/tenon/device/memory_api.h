// The user's view of memory: PyTorch's names (torch.cuda.memory_allocated …) and meanings, for any device. All sizes
// are bytes; every figure is of the allocator in service on the device, the current one of its kind where no index is
// given.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/device/device_state.h>
#include <tenon/device/snapshot.h>
#include <tenon/memory/history/history_settings.h>
#include <tenon/memory/pool.h>
#include <tenon/memory/stack/oom.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tenon {

/// Bytes in live blocks, after the allocator's rounding (PyTorch: allocated_bytes.all.current).
TENON_API std::size_t memory_allocated(Device device = kCPU);
/// The most that memory_allocated() was since the start or the last reset_peak_memory_stats().
TENON_API std::size_t max_memory_allocated(Device device = kCPU);
/// Bytes taken from the device: live blocks and what the allocator caches.
TENON_API std::size_t memory_reserved(Device device = kCPU);
TENON_API std::size_t max_memory_reserved(Device device = kCPU);

/// Every key of torch.cuda.memory_stats(), in its order: "allocated_bytes.all.current", "num_alloc_retries", … A policy
/// without pools of PyTorch's kind leaves small_pool, large_pool and inactive_split at 0.
using MemoryStatsTable = std::map<std::string, std::int64_t>;
TENON_API MemoryStatsTable memory_stats(Device device = kCPU);
/// The same, from figures that were taken before.
TENON_API MemoryStatsTable memory_stats_table(const MemoryStats& stats);

/// The table that torch.cuda.memory_summary() prints, to the character. `abbreviated` leaves out the rows by pool.
TENON_API std::string memory_summary(Device device = kCPU, bool abbreviated = false);
TENON_API std::string memory_summary_of(const MemoryStatsTable& stats, int device_index, bool abbreviated);

/// Peaks become what is current.
TENON_API void reset_peak_memory_stats(Device device = kCPU);
/// Sums ("allocated", "freed") and counts of events become 0.
TENON_API void reset_accumulated_memory_stats(Device device = kCPU);

/// Gives cached memory that no block uses back to the device. Tensors keep theirs. Returns the bytes given back.
TENON_API std::size_t empty_cache(Device device = kCPU);

/// Limits reserved memory to this part of the device's capacity; 1.0 lifts the limit. At the limit the allocator first
/// gives back what it caches. Throws Error for a fraction outside [0, 1] and for a device without a capacity.
TENON_API void set_per_process_memory_fraction(double fraction, Device device = kCPU);
TENON_API double get_per_process_memory_fraction(Device device = kCPU);

/// Free and total bytes of the whole device, as the device says (cudaMemGetInfo).
TENON_API SourceUsage mem_get_info(Device device = kCPU);

/// Live bytes by purpose, as requested, in the order of `Purpose`.
struct PurposeUsage {
  Purpose purpose = Purpose::kOther;
  Stat requested_bytes;
  std::array<Stat, kElementKindCount> by_element;  ///< the same by what they are made of, in the order of `ElementKind`
};
TENON_API std::vector<PurposeUsage> memory_by_purpose(Device device = kCPU);
/// Live bytes by label (LabelGuard), as requested; labels that were never used here are left out.
TENON_API std::vector<LabelUsage> memory_by_label(Device device = kCPU);

/// Keeps a history of what happens to the device's memory, for snapshots. `settings.stacks` says which events get a
/// call stack (PyTorch: context), `settings.max_entries` how many events are kept.
TENON_API void record_memory_history(const HistorySettings& settings = {}, Device device = kCPU);
/// Ends the history and forgets it (PyTorch: _record_memory_history(None)).
TENON_API void stop_memory_history(Device device = kCPU);

/// The layout of the device's memory and, if one is recorded, its history (PyTorch: _snapshot()).
TENON_API MemorySnapshot memory_snapshot(Device device = kCPU);

/// Puts another allocator in service while tensors live: they keep their memory and give it back where it came from.
/// Returns the one that served until now.
TENON_API std::shared_ptr<AllocatorStack> swap_allocator(const StackConfig& config, Device device = kCPU);

/// Another allocator for as long as the guard lives, on every thread.
class TENON_EXPORT AllocatorGuard {
 public:
  TENON_API AllocatorGuard(Device device, std::shared_ptr<AllocatorStack> allocator);
  TENON_API ~AllocatorGuard();
  AllocatorGuard(const AllocatorGuard&) = delete;
  AllocatorGuard& operator=(const AllocatorGuard&) = delete;

 private:
  DeviceState& state_;
  std::shared_ptr<AllocatorStack> previous_;
};

/// A private pool of the allocator that serves `device` now; see UseMemPool. Throws Error where it has no such pools.
TENON_API std::unique_ptr<MemPool> make_mem_pool(Device device = kCPU, const PoolOptions& options = {});

/// The allocator of page-locked host memory for copies from and to `device` (PyTorch's CachingHostAllocator, see
/// memory/pinned_cache.h), made on first use. Throws Error for a device that has no such memory.
TENON_API std::shared_ptr<AllocatorStack> pinned_host_allocator(Device device);

/// torch.cuda.host_memory_stats() of that allocator, without the times of calls: allocations and allocated_bytes are
/// what it owns, active_requests and active_bytes what is handed out (their peaks exact, where PyTorch adds up those of
/// its size classes).
TENON_API MemoryStatsTable host_memory_stats(Device device);
TENON_API void reset_peak_host_memory_stats(Device device);
TENON_API void reset_accumulated_host_memory_stats(Device device);
/// Gives cached page-locked memory back. Returns the bytes.
TENON_API std::size_t empty_host_cache(Device device);

}  // namespace tenon
