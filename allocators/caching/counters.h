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

#include <algorithm>
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
  std::int64_t increase(std::int64_t amount) { return change(amount, amount); }
  /// Up or down; only what comes counts as come.
  std::int64_t change(std::int64_t amount) { return change(amount, std::max<std::int64_t>(amount, 0)); }
  void decrease(std::int64_t amount) { set(current_, get(current_) - amount); }
  std::int64_t current() const { return get(current_); }
  std::int64_t came() const { return get(came_); }
  std::int64_t allowance() const { return get(allowance_); }
  void set_allowance(std::int64_t value) { set(allowance_, value); }
  void copy_from(const Counter& other) {
    set(current_, get(other.current_));
    set(came_, get(other.came_));
    set(allowance_, get(other.allowance_));
  }

 private:
  using Cell = std::atomic<std::int64_t>;
  static std::int64_t get(const Cell& cell) { return cell.load(std::memory_order_relaxed); }
  static void set(Cell& cell, std::int64_t value) { cell.store(value, std::memory_order_relaxed); }
  std::int64_t change(std::int64_t amount, std::int64_t coming) {
    const std::int64_t current = get(current_) + amount;
    set(current_, current);
    set(came_, get(came_) + coming);
    return current;
  }

  Cell current_{0};
  Cell came_{0};
  Cell allowance_{0};
};

/// One arena's counters: [small, large][metric], and an allowance for the sum of both.
struct alignas(64) Counters {
  std::array<std::array<Counter, kMetrics>, 2> of;
  std::array<Counter, kMetrics> both;  ///< only their allowances count

  /// Whether an allowance is exceeded: Peaks::settle is then due.
  bool increase(bool large, Metric metric, std::int64_t amount) {
    return exceeds(of[large][metric].increase(amount), large, metric);
  }
  void decrease(bool large, Metric metric, std::int64_t amount) { of[large][metric].decrease(amount); }
  /// A signed change as one step, without a branch: what falls cannot exceed an allowance.
  bool change(bool large, Metric metric, std::int64_t amount) {
    return exceeds(of[large][metric].change(amount), large, metric);
  }
  std::int64_t current(Metric metric) const { return of[0][metric].current() + of[1][metric].current(); }

 private:
  bool exceeds(std::int64_t current, bool large, Metric metric) const {
    return (current > of[large][metric].allowance()) |
           (current + of[!large][metric].current() > both[metric].allowance());
  }
};

/// The peaks over all arenas.
class Peaks {
 public:
  void add(Counters& counters);
  /// Some counter of some arena went over its allowance.
  void settle();
  /// As long as no free was ever deferred, what is active is what is allocated, and only that is counted. Afterwards
  /// both are: called once, while every arena is locked.
  void count_active();
  /// current, peak, allocated, freed of one metric over all arenas; pool 0 is the sum, 1 small, 2 large.
  Stat stat(int pool, Metric metric) const;
  void reset(bool peaks, bool accumulated);

 private:
  struct Sum {
    std::int64_t current = 0, came = 0;
  };
  static Counter& allowance_of(Counters& counters, int pool, int metric);
  static std::int64_t current_of(const Counters& counters, int pool, int metric);
  Sum sum_locked(int pool, int metric) const;
  void deal_locked(int pool, int metric, std::int64_t slack);

  mutable SpinLock mutex_;
  std::vector<Counters*> all_;
  bool counts_active_ = false;
  std::array<std::array<std::int64_t, kMetrics>, 3> peak_{};
  std::array<std::array<Sum, kMetrics>, 3> base_{};  // came and went before reset_accumulated; current = what had gone
};

}  // namespace tenon::caching
