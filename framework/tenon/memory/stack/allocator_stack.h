// AllocatorStack: an allocator in service. The policy that a plugin supplied, the layers that the configuration put
// around it, and the host's own observation: statistics, history, out-of-memory report, in one place for every policy.
//
//   AllocatorStack   statistics, history, OOM report
//     layers         limit, trace, guard … outermost first            (memory/layers/)
//       policy       what the plugin supplied
//     source hooks   of layers that act on the device's calls: limit, inject
//   ObservedSource   counts what is taken and given
//     MemorySource   the device
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/memory/allocator.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/stats.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

/// One adaptor of the stack by name, with its options: "limit" {bytes = 8GiB}.
struct LayerConfig {
  std::string name;
  Options options;
};

struct StackConfig {
  AllocatorInfo policy;
  Options options;                  ///< of the policy
  std::vector<LayerConfig> layers;  ///< outermost first
};

class BiasedLock;
class History;
class SourceListener;

/// What is live and what is taken from the device at a moment.
struct Usage {
  std::size_t requested_bytes = 0;
  std::size_t allocated_bytes = 0;
  std::size_t reserved_bytes = 0;
  std::size_t peak_reserved_bytes = 0;
};

/// What a layer has to say about itself: "track" {("leaks", "3"), …}.
struct LayerReport {
  std::string layer;
  std::vector<std::pair<std::string, std::string>> entries;
};

/// The top layer, or the policy where there is none; with the stack's lock held, where the policy needs one, for as
/// long as this lives: `stack.outermost()->walk(visitor)`.
class LockedAllocator {
 public:
  TENON_API LockedAllocator(Allocator& allocator, BiasedLock* mutex);
  TENON_API ~LockedAllocator();
  LockedAllocator(const LockedAllocator&) = delete;
  LockedAllocator& operator=(const LockedAllocator&) = delete;
  Allocator* operator->() const { return &allocator_; }
  Allocator& operator*() const { return allocator_; }

 private:
  Allocator& allocator_;
  BiasedLock* const mutex_;  ///< null where the policy is thread-safe
};

/// Thread-safe. Outlives every block that it gave: DeviceState keeps it until the device is closed.
class TENON_API AllocatorStack {
 public:
  /// `source` outlives the stack. Throws ConfigError for an unknown layer (the nearest known one is named).
  static std::shared_ptr<AllocatorStack> make(MemorySource& source, const StackConfig& config);
  /// A stack that a replay tries a policy in: one thread calls it, no observer is told when memory runs out, and the
  /// host does not empty the policy's cache for it, so that what is observed is what the policy decides. `listener`,
  /// which may be null and outlives it, is told of the policy's calls to the device.
  static std::unique_ptr<AllocatorStack> make_trial(MemorySource& source, const StackConfig& config,
                                                    SourceListener* listener);
  ~AllocatorStack();
  AllocatorStack(const AllocatorStack&) = delete;
  AllocatorStack& operator=(const AllocatorStack&) = delete;

  /// Zero bytes give an empty block. Throws OutOfMemory with every figure filled in, after the OOM observers ran. An
  /// alignment above kMaxAlignment is served by taking more.
  Block allocate(const Request& request);
  /// Empty blocks are ignored.
  void deallocate(const Block& block, StreamRef last_use) noexcept;
  void deallocate(const Block& block) noexcept { deallocate(block, block.request.stream); }
  void record_use(const Block& block, StreamRef stream);
  /// empty_cache(): returns the bytes given back.
  std::size_t trim(std::size_t keep_bytes = 0);
  void walk(SegmentVisitor& visitor) const;

  MemoryStats stats() const;
  /// The same figures as in stats(), without waiting for anybody: of a trial only.
  Usage usage() const;
  /// Labels that were ever used, in the order of their first use in the process.
  std::vector<LabelUsage> usage_by_label() const;
  /// Peaks become what is current.
  void reset_peak_stats();
  /// Sums and counts of calls become 0.
  void reset_accumulated_stats();
  void check_invariants() const;

  /// A ceiling on reserved bytes, 0 for none: beyond it the policy finds the device exhausted, gives back what it
  /// caches and tries again (PyTorch: set_per_process_memory_fraction). Returns the old one.
  std::size_t set_reserved_limit(std::size_t limit_bytes);

  /// Events go to this history from now on. It may serve several stacks of one device.
  void attach_history(std::shared_ptr<History> history);

  /// What the layers have counted or found, outermost first.
  std::vector<LayerReport> layer_reports() const;

  /// Tells the layers where the program is ("step 3"): `trace` writes it as a mark.
  void mark(std::string_view name);

  /// What is asked of the policy itself, such as private pools. What allocates goes through the stack, which counts it.
  LockedAllocator outermost() const;

  const StackConfig& config() const;

 private:
  class Impl;
  Block allocate_unusual(const Request& asked);
  Block allocate_untold(const Request& asked);
  explicit AllocatorStack(Owned<Impl> impl);
  Owned<Impl> impl_;
};

}  // namespace tenon
