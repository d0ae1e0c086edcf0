// What a stack says of itself: statistics, invariants, the layers' reports. Declared in stack_impl.h.
#include <tenon/core/error.h>
#include <tenon/memory/stack/stack_impl.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

MemoryStats AllocatorStack::Impl::stats_locked() const {
  MemoryStats stats;
  ledger_->read(stats);
  const SourceCounters counters = observed_.counters();
  stats.reserved_bytes = counters.reserved_bytes;
  stats.device_allocations = counters.allocations;
  stats.device_frees = counters.frees;
  stats.device_maps = counters.maps;
  stats.device_unmaps = counters.unmaps;
  stats.device_synchronizations = counters.synchronizations;
  stats.device_waits = counters.waits;
  stats.segments = counters.segments;
  stats.device_growths = counters.growths;
  stats.device_shrinks = counters.shrinks;
  stats.ooms = ooms_.load(std::memory_order_relaxed);
  top_->report(stats.policy);
  stats.policy.retries += retries_.load(std::memory_order_relaxed) - retries_before_.load(std::memory_order_relaxed);
  stats.policy.synchronizations -= synchronizations_before_.load(std::memory_order_relaxed);
  // Of a policy that counts none of its own, what the device saw: refused, given back.
  if (!stats.policy.has_pools) stats.policy.retries = std::max(stats.policy.retries, counters.retries);
  return stats;
}

MemoryStats AllocatorStack::stats() const {
  const LockedAllocator allocator = impl_->locked();
  return impl_->stats_locked();
}

Usage AllocatorStack::usage() const {
  return {.requested_bytes = impl_->ledger_->requested_by_one_thread(),
          .allocated_bytes = impl_->ledger_->allocated_by_one_thread(),
          .reserved_bytes = impl_->observed_.reserved_bytes(),
          .peak_reserved_bytes = impl_->observed_.peak_reserved_bytes()};
}

std::vector<LabelUsage> AllocatorStack::usage_by_label() const { return impl_->labels_.read(); }

void AllocatorStack::reset_peak_stats() {
  const LockedAllocator allocator = impl_->locked();
  impl_->labels_.reset(true, false);
  impl_->ledger_->reset_peak();
  impl_->observed_.reset_peak();
  allocator->reset_stats(true, false);
}

void AllocatorStack::reset_accumulated_stats() {
  const LockedAllocator allocator = impl_->locked();
  impl_->labels_.reset(false, true);
  impl_->ledger_->reset_accumulated();
  impl_->observed_.reset_accumulated();
  impl_->ooms_.store(0, std::memory_order_relaxed);
  impl_->retries_.store(0, std::memory_order_relaxed);
  allocator->reset_stats(false, true);
  PolicyStats left;
  allocator->report(left);
  impl_->retries_before_.store(left.retries, std::memory_order_relaxed);
  impl_->synchronizations_before_.store(left.synchronizations, std::memory_order_relaxed);
}

void AllocatorStack::check_invariants() const {
  const LockedAllocator allocator = impl_->locked();
  allocator->check_invariants();
  MemoryStats stats;
  impl_->ledger_->read(stats);
  if (stats.allocations.current < 0 || stats.requested_bytes.current < 0 || stats.allocated_bytes.current < 0) {
    throw Error(fmt::format("more was freed than allocated: {} blocks, {} bytes are live by count",
                            stats.allocations.current, stats.allocated_bytes.current));
  }
  if (stats.allocated_bytes.current < stats.requested_bytes.current) {
    throw Error(fmt::format("blocks are smaller than asked for: {} bytes requested, {} handed out",
                            stats.requested_bytes.current, stats.allocated_bytes.current));
  }
}

std::vector<LayerReport> AllocatorStack::layer_reports() const {
  const LockedAllocator allocator = impl_->locked();
  std::vector<LayerReport> reports;
  for (const auto& [name, layer] : impl_->layers_) reports.push_back({name, layer->summary()});
  return reports;
}

}  // namespace tenon
