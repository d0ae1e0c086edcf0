// ObservedSource: the host's counter between every policy and the device. What a policy takes and gives is counted
// here, so that no policy has to.
#pragma once

#include <tenon/memory/forwarding.h>
#include <tenon/memory/mapped_ranges.h>
#include <tenon/memory/stats.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tenon {

/// Figures of one stack's traffic with its source. `reserved` counts acquired bytes, and mapped physical bytes once,
/// however often they are mapped.
struct SourceCounters {
  Stat reserved_bytes;
  std::int64_t allocations = 0;
  std::int64_t frees = 0;
  std::int64_t maps = 0;
  std::int64_t unmaps = 0;
  std::int64_t synchronizations = 0;
};

/// Told after memory came, before memory goes; called without a lock of ours held.
class SourceListener {
 public:
  virtual ~SourceListener() = default;
  virtual void acquired(const void* address, std::size_t bytes) noexcept = 0;
  virtual void releasing(const void* address, std::size_t bytes) noexcept = 0;
  virtual void mapped(const void* address, std::size_t bytes) noexcept = 0;
  virtual void unmapped(const void* address, std::size_t bytes) noexcept = 0;
};

class ObservedSource final : public ForwardingSource {
 public:
  explicit ObservedSource(MemorySource& upstream) : ForwardingSource(upstream) {}

  void* acquire(std::size_t bytes) override;
  void release(void* address, std::size_t bytes) noexcept override;
  Physical create(std::size_t bytes) override;
  void destroy(Physical physical, std::size_t bytes) noexcept override;
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override;
  void unmap(void* address, std::size_t bytes) noexcept override;
  void wait(Ticket ticket) override;
  void synchronize() override;

  SourceCounters counters() const;
  std::size_t reserved_bytes() const { return reserved_now_.load(std::memory_order_relaxed); }
  void reset_peak();
  void reset_accumulated();

  /// A ceiling on reserved bytes: acquire and create beyond it find the device exhausted. 0 lifts it.
  void set_limit(std::size_t limit_bytes) { limit_bytes_.store(limit_bytes, std::memory_order_relaxed); }
  std::size_t limit() const { return limit_bytes_.load(std::memory_order_relaxed); }
  void set_listener(SourceListener* listener) { listener_.store(listener, std::memory_order_release); }

 private:
  bool over_limit_locked(std::size_t bytes) const;
  void take_locked(std::size_t bytes);
  void give_locked(std::size_t bytes);
  SourceListener* listener() const { return listener_.load(std::memory_order_acquire); }

  mutable std::mutex mutex_;
  SourceCounters counters_;
  std::size_t pending_bytes_ = 0;  ///< being acquired, or created and mapped nowhere: not reserved, but under the limit
  MappedRanges mapped_;

  std::atomic<std::size_t> reserved_now_{0};
  std::atomic<std::size_t> limit_bytes_{0};
  std::atomic<SourceListener*> listener_{nullptr};
};

}  // namespace tenon
