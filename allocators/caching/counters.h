// Counters: what PyTorch's memory_stats counts per block, kept by each stream for itself, with exact peaks over all of
// them.
//
// Note [Allowances]
// A peak over several streams would need a shared counter, hence a cache line that every allocation of every thread
// writes. Instead each stream gets an allowance: as long as all stay within theirs, the sum cannot pass the known peak.
// Only the stream that outgrows its allowance takes the lock of Peaks. All allowances and what is not dealt out add up
// to the peak; when nothing is left, the others' slack is called in, and only if that is not enough either the peak
// rises.
//
// Note [Resting]
// A history may have thousands of streams of which few do something at a time. Only a few are therefore busy: the
// others rest, which means that their allowances are what they have, so that there is nothing to call in from them, and
// that whatever they do next asks first. The oldest of the busy ones goes to rest when one too many wakes.
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

struct Arena;

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

/// What reset_stats of an allocator does to one figure.
inline void reset(Stat& stat, bool peaks, bool accumulated) {
  if (peaks) stat.reset_peak();
  if (accumulated) stat.reset_accumulated();
}

/// A figure for what is rare enough that threads may share a lock.
class LockedStat {
 public:
  void increase() {
    std::lock_guard lock(mutex_);
    stat_.increase(1);
  }
  void decrease() {
    std::lock_guard lock(mutex_);
    stat_.decrease(1);
  }
  Stat read() const {
    std::lock_guard lock(mutex_);
    return stat_;
  }
  void reset(bool peaks, bool accumulated) {
    std::lock_guard lock(mutex_);
    caching::reset(stat_, peaks, accumulated);
  }

 private:
  mutable SpinLock mutex_;
  Stat stat_;
};

/// One arena's counters: [small, large][metric], and an allowance for the sum of both.
struct alignas(64) Counters {
  /// What is rarely the case, behind one test.
  enum Special : std::uint8_t {
    kCountsActive = 1,  ///< some free was deferred, in this arena or another: see Peaks::count_active
    kResting = 2        ///< see Note [Resting]: a decrease is told to Peaks::settle too
  };

  std::array<std::array<Counter, kMetrics>, 2> of;
  std::array<Counter, kMetrics> both;  ///< only their allowances count
  std::uint8_t special = kResting;

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
  void add(Arena& arena);
  /// Some counter of this arena, whose lock is held, went over its allowance, or it did something while resting.
  void settle(Arena& arena);
  /// As long as no free was ever deferred, what is active is what is allocated, and only that is counted. Afterwards
  /// both are: called once, while every arena is locked.
  void count_active();
  /// current, peak, allocated, freed of one metric over all arenas; pool 0 is the sum, 1 small, 2 large.
  Stat stat(int pool, Metric metric) const;
  void reset(bool peaks, bool accumulated);
  /// Whether one thread holds every arena's lock, which the caller does.
  void set_all_locked(bool all_locked) { all_locked_ = all_locked; }
  /// Throws Error unless every peak is accounted for; every arena is locked.
  void check_invariants() const;

 private:
  struct Sum {
    std::int64_t current = 0, came = 0;
  };
  template <typename T>
  using Table = std::array<std::array<T, kMetrics>, 3>;

  static Counter& allowance_of(Counters& counters, int pool, int metric);
  static std::int64_t current_of(const Counters& counters, int pool, int metric);
  Sum sum_locked(int pool, int metric) const;
  void wake_locked(Arena& arena);
  void rest_locked(Arena& arena);
  void grant_locked(Arena& arena, int pool, int metric);

  mutable SpinLock mutex_;
  std::vector<Arena*> all_;
  std::vector<Arena*> busy_;  ///< oldest first; has room for all
  bool all_locked_ = false;
  bool counts_active_ = false;
  Table<std::int64_t> peak_{};
  Table<std::int64_t> undealt_{};  ///< peak - all allowances
  Table<Sum> base_{};              ///< came and went before reset_accumulated; current = what had gone
};

}  // namespace tenon::caching
