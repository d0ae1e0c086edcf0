// Asking for allowances, waking and resting, and the figures over all arenas.
#include "counters.h"
#include "arena.h"

#include <tenon/core/error.h>
#include <tenon/memory/concurrent/heavy_barrier.h>

#include <algorithm>
#include <string>

namespace tenon::caching {

namespace {

constexpr std::size_t kMostBusy = 16;

/// Each (pool, metric); pool 0 is the sum.
template <typename Visit>
void for_each_gauge(Visit visit) {
  for (int pool = 0; pool < 3; ++pool)
    for (int metric = 0; metric < kMetrics; ++metric) visit(pool, metric);
}

template <typename Row>
auto& at(Row& row, int metric) {
  return row[static_cast<std::size_t>(metric)];
}
template <typename Table>
auto& at(Table& table, int pool, int metric) {
  return table[static_cast<std::size_t>(pool)][static_cast<std::size_t>(metric)];
}

}  // namespace

void Peaks::add(Arena& arena) {
  std::lock_guard lock(mutex_);
  all_.push_back(&arena);  // at rest, with allowances of 0
  busy_.reserve(all_.capacity());
  if (counts_active_) arena.counters.special |= Counters::kCountsActive;
}

EscrowShare Peaks::share_of(Counters& counters, int pool, int metric) {
  if (pool == 0) return {counters.current(static_cast<Metric>(metric)), at(counters.both, metric)};
  EscrowedCount& count = at(counters.of, pool - 1, metric);
  return {count.current(), count};
}

EscrowSum Peaks::sum_locked(int pool, int metric) const {
  EscrowSum sum;
  for (const Arena* arena : all_) {
    for (const int kind : {0, 1}) {
      if (pool != 0 && pool != kind + 1) continue;
      const EscrowedCount& count = at(arena->counters.of, kind, metric);
      sum.current += count.current();
      sum.came += count.came();
    }
  }
  return sum;
}

void Peaks::settle(Arena& arena) {
  std::lock_guard lock(mutex_);
  if (arena.counters.special & Counters::kResting) wake_locked(arena);
  if (busy_.size() == 1 || all_locked_) {
    settle_alone_locked(arena);
  } else {
    settle_among_others_locked(arena);
  }
}

/// No other thread counts meanwhile.
void Peaks::settle_alone_locked(Arena& arena) {
  Counters& counters = arena.counters;
  for (int metric = 0; metric < kMetrics; ++metric) {
    const EscrowedCount& small = at(counters.of[0], metric);
    const EscrowedCount& large = at(counters.of[1], metric);
    const bool outgrown = (small.current() > small.allowance()) | (large.current() > large.allowance()) |
                          (small.current() + large.current() > at(counters.both, metric).allowance());
    if (!outgrown) continue;
    for (int pool = 0; pool < 3; ++pool) {
      const EscrowShare own = share_of(counters, pool, metric);
      if (own.current <= own.allowance.allowance()) continue;
      at(peaks_, pool, metric).grant(own, busy_, [=](Arena* busy) { return share_of(busy->counters, pool, metric); });
    }
  }
}

void Peaks::settle_among_others_locked(Arena& arena) {
  std::array<std::array<bool, kMetrics>, 3> calls_in{};
  bool calls_any_in = false;
  for_each_gauge([&](int pool, int metric) {
    const EscrowShare own = share_of(arena.counters, pool, metric);
    EscrowedPeak& peak = at(peaks_, pool, metric);
    if (own.current <= own.allowance.allowance() || peak.grant_undealt(own, busy_.size())) return;
    peak.call_in(busy_, [=](Arena* busy) { return share_of(busy->counters, pool, metric); });
    calls_any_in = at(calls_in, pool, metric) = true;
  });
  if (!calls_any_in) return;
  heavy_barrier();
  for_each_gauge([&](int pool, int metric) {
    if (!at(calls_in, pool, metric)) return;
    at(peaks_, pool, metric).deal_out(busy_, [=](Arena* busy) { return share_of(busy->counters, pool, metric); });
  });
}

/// Its allowances are still what it had when it went to rest: what it has done since is one step.
void Peaks::wake_locked(Arena& arena) {
  arena.counters.special &= static_cast<std::uint8_t>(~Counters::kResting);
  busy_.push_back(&arena);
  // An arena that another thread works in stays busy for another round.
  for (int tries = 4; tries > 0 && busy_.size() > kMostBusy; --tries) {
    Arena* const oldest = busy_.front();
    busy_.erase(busy_.begin());
    if (all_locked_) {
      rest_locked(*oldest);
    } else if (oldest->mutex.try_lock()) {
      rest_locked(*oldest);
      oldest->mutex.unlock();
    } else {
      busy_.push_back(oldest);
    }
  }
}

void Peaks::rest_locked(Arena& arena) {
  arena.counters.special |= Counters::kResting;
  for_each_gauge(
      [&](int pool, int metric) { at(peaks_, pool, metric).give_back(share_of(arena.counters, pool, metric)); });
}

void Peaks::count_active() {
  std::lock_guard lock(mutex_);
  if (counts_active_) return;
  counts_active_ = true;
  for (Arena* arena : all_) arena->counters.special |= Counters::kCountsActive;
  for (const auto& [to, from] : {std::pair{kActive, kAllocation}, std::pair{kActiveBytes, kAllocatedBytes}}) {
    for (Arena* arena : all_) {
      for (auto& kind : arena->counters.of) kind[to].copy_from(kind[from]);
      arena->counters.both[to].copy_from(arena->counters.both[from]);
    }
    for (int pool = 0; pool < 3; ++pool) at(peaks_, pool, to) = at(peaks_, pool, from);
  }
}

Stat Peaks::stat(int pool, Metric metric) const {
  std::lock_guard lock(mutex_);
  if (!counts_active_ && metric == kActive) metric = kAllocation;
  if (!counts_active_ && metric == kActiveBytes) metric = kAllocatedBytes;
  return at(peaks_, pool, metric).stat(sum_locked(pool, metric));
}

void Peaks::reset(bool peaks, bool accumulated) {
  std::lock_guard lock(mutex_);
  for_each_gauge([&](int pool, int metric) {
    const EscrowSum sum = sum_locked(pool, metric);
    EscrowedPeak& peak = at(peaks_, pool, metric);
    if (accumulated) peak.reset_accumulated(sum);
    if (peaks)
      peak.reset_peak(sum.current, all_, [=](Arena* arena) { return share_of(arena->counters, pool, metric); });
  });
}

void Peaks::check_invariants() const {
  std::lock_guard lock(mutex_);
  for_each_gauge([&](int pool, int metric) {
    const EscrowedPeak& peak = at(peaks_, pool, metric);
    std::int64_t dealt = 0;
    for (Arena* arena : all_) dealt += share_of(arena->counters, pool, metric).allowance.allowance();
    if (dealt + peak.undealt() != peak.peak())
      throw Error("caching: allowances of " + std::to_string(dealt) + " and " + std::to_string(peak.undealt()) +
                  " that are not dealt out do not add up to the peak of " + std::to_string(peak.peak()));
  });
}

}  // namespace tenon::caching
