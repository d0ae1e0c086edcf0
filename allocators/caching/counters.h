// Counters: what PyTorch's memory_stats counts per block, kept by each stream for itself, with exact peaks over all of
// them.
//
// A peak over several streams would need a shared counter, hence a cache line that every allocation of every thread
// writes. Instead each stream gets an allowance: as long as all stay within theirs, the sum cannot pass the known peak.
// Only the stream that outgrows its allowance takes the lock of Peaks, adds up what all have, and deals the slack out
// anew.
#pragma once

#include "spin_lock.h"

#include <tenon/memory/allocator.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tenon::caching {

enum Metric : int {
  kAllocation,
  kAllocatedBytes,
  kActive,
  kActiveBytes,
  kRequestedBytes,
  kInactiveSplit,
  kInactiveSplitBytes,
  kMetrics
};

/// Written under its arena's lock only; read by anyone, hence atomic, but never a locked instruction.
class Counter {
 public:
  /// Whether the allowance is exceeded.
  bool increase(std::int64_t amount) {
    const std::int64_t now = get(current_) + amount;
    set(current_, now);
    set(came_, get(came_) + amount);
    return now > get(allowance_);
  }
  void decrease(std::int64_t amount) { set(current_, get(current_) - amount); }
  std::int64_t current() const { return get(current_); }
  std::int64_t came() const { return get(came_); }
  std::int64_t allowance() const { return get(allowance_); }
  void set_allowance(std::int64_t value) { set(allowance_, value); }

 private:
  using Cell = std::atomic<std::int64_t>;
  static std::int64_t get(const Cell& cell) { return cell.load(std::memory_order_relaxed); }
  static void set(Cell& cell, std::int64_t value) { cell.store(value, std::memory_order_relaxed); }

  Cell current_{0};
  Cell came_{0};
  Cell allowance_{0};
};

/// One arena's counters: [aggregate, small, large][metric].
struct alignas(64) Counters {
  std::array<std::array<Counter, kMetrics>, 3> of;

  bool increase(int pool, Metric metric, std::int64_t amount) {
    const bool all = of[0][metric].increase(amount);
    return of[pool][metric].increase(amount) || all;
  }
  void decrease(int pool, Metric metric, std::int64_t amount) {
    of[0][metric].decrease(amount);
    of[pool][metric].decrease(amount);
  }
  /// A signed change, positive or negative as one step.
  bool change(int pool, Metric metric, std::int64_t amount) {
    if (amount > 0) return increase(pool, metric, amount);
    if (amount < 0) decrease(pool, metric, -amount);
    return false;
  }
};

/// The peaks over all arenas.
class Peaks {
 public:
  void add(Counters& counters);
  /// Some counter of some arena went over its allowance.
  void settle();
  /// current, peak, allocated, freed of one metric over all arenas.
  Stat stat(int pool, Metric metric) const;
  void reset(bool peaks, bool accumulated);

 private:
  struct Sum {
    std::int64_t current = 0, came = 0;
  };
  Sum sum_locked(int pool, int metric) const;
  void deal_locked(int pool, int metric, std::int64_t slack);

  mutable SpinLock mutex_;
  std::vector<Counters*> all_;
  std::array<std::array<std::int64_t, kMetrics>, 3> peak_{};
  std::array<std::array<Sum, kMetrics>, 3> base_{};  // came and went before reset_accumulated; current = what had gone
};

}  // namespace tenon::caching
