// Counters: what PyTorch's memory_stats counts per block, kept by each stream for itself, with exact peaks over all of
// them.
//
// Each stream counts by itself, and asks only when it outgrows its allowance: see Note [Escrowed peaks] in
// memory/concurrent/escrowed_peak.h.
//
// Note [Resting]
// A history may have thousands of streams of which few do something at a time. Only a few are therefore busy: the
// others rest, which means that their allowances are what they have, so that there is nothing to call in from them, and
// that whatever they do next asks first. The oldest of the busy ones goes to rest when one too many wakes.
#pragma once

#include <tenon/memory/allocator.h>
#include <tenon/memory/concurrent/escrowed_peak.h>
#include <tenon/memory/concurrent/spin_lock.h>

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

  std::array<std::array<EscrowedCount, kMetrics>, 2> of;
  std::array<EscrowedCount, kMetrics> both;  ///< only their allowances count
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
    std::atomic_signal_fence(std::memory_order_seq_cst);  // what was counted comes first: see Note [Escrowed peaks]
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
  static EscrowShare share_of(Counters& counters, int pool, int metric);
  EscrowSum sum_locked(int pool, int metric) const;
  void settle_alone_locked(Arena& arena);
  void settle_among_others_locked(Arena& arena);
  void wake_locked(Arena& arena);
  void rest_locked(Arena& arena);

  mutable SpinLock mutex_;
  std::vector<Arena*> all_;
  std::vector<Arena*> busy_;  ///< oldest first; has room for all
  bool all_locked_ = false;
  bool counts_active_ = false;
  std::array<std::array<EscrowedPeak, kMetrics>, 3> peaks_;
};

}  // namespace tenon::caching
