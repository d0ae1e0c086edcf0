// Limits: how much may be reserved, and from which share of it on cached segments are collected as garbage.
#pragma once

#include "arena/block_record.h"
#include "settings.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tenon::caching {

/// Changed while every arena is locked, read under any arena's lock.
class Limits {
 public:
  explicit Limits(const Settings& settings)
      : compat_1_13_(settings.compat == Compat::k1_13), garbage_threshold_(settings.garbage_collection_threshold) {}

  /// PyTorch's set_per_process_memory_fraction, of a device of `total_bytes` (0: unknown, hence no limit). 1 lifts the
  /// limit (in 1.13: limits to the whole device).
  void set_fraction(double fraction, std::size_t total_bytes);
  /// The host's ceiling; 0 = none.
  void set_host_limit(std::size_t limit_bytes);

  /// What the process may reserve of the device, by the fraction alone; kUnlimited where its size is unknown.
  std::size_t device_share_bytes() const { return device_share_bytes_; }
  bool allows(std::size_t reserved_bytes) const { return limit_bytes_ == kUnlimited || reserved_bytes <= limit_bytes_; }
  bool collects_garbage() const { return collects_garbage_; }
  /// Beyond so many reserved bytes garbage is collected.
  std::size_t garbage_limit_bytes() const {
    return static_cast<std::size_t>(garbage_threshold_ * static_cast<double>(limit_bytes_));
  }

  // A cached block's age is counted in look-ups of the default large pool, while garbage is collected.
  void count_lookup() { lookups_.fetch_add(1, std::memory_order_relaxed); }
  /// What a block that is cached now remembers.
  [[gnu::always_inline]] std::uint64_t age_mark() const {
    return collects_garbage_ ? lookups_.load(std::memory_order_relaxed) : 0;
  }
  std::uint64_t age_of(const BlockRecord* block) const {
    return lookups_.load(std::memory_order_relaxed) - block->born;
  }

 private:
  void apply();

  const bool compat_1_13_;
  bool collects_garbage_ = false;
  const double garbage_threshold_;        ///< of the limit; 0 = off
  std::size_t limit_bytes_ = kUnlimited;  ///< the lower one of the two
  std::size_t fraction_limit_bytes_ = kUnlimited;
  std::size_t host_limit_bytes_ = kUnlimited;
  std::size_t device_share_bytes_ = kUnlimited;
  std::atomic<std::uint64_t> lookups_{0};
};

}  // namespace tenon::caching
