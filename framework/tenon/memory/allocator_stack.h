// AllocatorStack: an allocator in service. The policy that a plugin supplied, the layers that the configuration put around
// it, and the host's own observation: statistics, history, out-of-memory report, in one place for every policy.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/allocator.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/stats.h>

#include <cstddef>
#include <memory>
#include <string>
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

/// Thread-safe. Storages share its ownership, so it lives as long as any block that it gave.
class TENON_API AllocatorStack : public std::enable_shared_from_this<AllocatorStack> {
 public:
  /// `source` outlives the stack. Throws ConfigError for an unknown layer (the nearest known one is named).
  static std::shared_ptr<AllocatorStack> make(MemorySource& source, const StackConfig& config);
  ~AllocatorStack();
  AllocatorStack(const AllocatorStack&) = delete;
  AllocatorStack& operator=(const AllocatorStack&) = delete;

  /// Zero bytes give an empty block. Throws OutOfMemory with every figure filled in, after the OOM observers ran.
  Block allocate(const Request& request);
  void deallocate(const Block& block, StreamRef last_use) noexcept;
  void deallocate(const Block& block) noexcept { deallocate(block, block.request.stream); }
  void record_use(const Block& block, StreamRef stream);
  /// empty_cache(): returns the bytes given back.
  std::size_t trim(std::size_t keep_bytes = 0);
  void walk(SegmentVisitor& visitor) const;

  MemoryStats stats() const;
  void reset_peak_stats();
  void reset_accumulated_stats();
  void check_invariants() const;

  const StackConfig& config() const;
  MemorySource& source() const;   ///< the observed one: what the policy sees
  Allocator& outermost() const;   ///< the top layer, or the policy

 private:
  class Impl;
  explicit AllocatorStack(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon
