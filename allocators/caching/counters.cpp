// Exact peaks over many streams without a shared counter: allowances that add up to the known peak.
#include "counters.h"
#include "arena.h"

#include <tenon/core/error.h>

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

Counter& Peaks::allowance_of(Counters& counters, int pool, int metric) {
  return pool == 0 ? counters.both[static_cast<std::size_t>(metric)]
                   : counters.of[static_cast<std::size_t>(pool - 1)][static_cast<std::size_t>(metric)];
}

std::int64_t Peaks::current_of(const Counters& counters, int pool, int metric) {
  return pool == 0 ? counters.current(static_cast<Metric>(metric))
                   : counters.of[static_cast<std::size_t>(pool - 1)][static_cast<std::size_t>(metric)].current();
}

Peaks::Sum Peaks::sum_locked(int pool, int metric) const {
  Sum sum;
  for (const Arena* arena : all_) {
    sum.current += current_of(arena->counters, pool, metric);
    for (const int kind : {0, 1})
      if (pool == 0 || pool == kind + 1)
        sum.came += arena->counters.of[static_cast<std::size_t>(kind)][static_cast<std::size_t>(metric)].came();
  }
  return sum;
}

void Peaks::settle(Arena& arena) {
  std::lock_guard lock(mutex_);
  if (arena.counters.special & Counters::kResting) wake_locked(arena);
  for_each_gauge([&](int pool, int metric) {
    if (current_of(arena.counters, pool, metric) > allowance_of(arena.counters, pool, metric).allowance())
      grant_locked(arena, pool, metric);
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
  for_each_gauge([&](int pool, int metric) {
    Counter& allowance = allowance_of(arena.counters, pool, metric);
    const std::int64_t current = current_of(arena.counters, pool, metric);
    at(undealt_, pool, metric) += allowance.allowance() - current;
    allowance.set_allowance(current);
  });
}

/// Raises the arena's allowance to what it has, from what is not dealt out, else from the slack of all who are busy,
/// else by raising the peak; and deals out some of what is left, so that the next ones need not ask.
void Peaks::grant_locked(Arena& arena, int pool, int metric) {
  Counter& own = allowance_of(arena.counters, pool, metric);
  const std::int64_t current = current_of(arena.counters, pool, metric);
  const auto shares = static_cast<std::int64_t>(busy_.size()) + 1;  // one is kept for who wakes next
  std::int64_t& undealt = at(undealt_, pool, metric);
  undealt -= current - own.allowance();
  own.set_allowance(current);
  if (undealt >= 0) {
    own.set_allowance(current + undealt / shares);
    undealt -= undealt / shares;
    return;
  }
  for (Arena* const busy : busy_) {
    Counter& allowance = allowance_of(busy->counters, pool, metric);
    const std::int64_t has = current_of(busy->counters, pool, metric);
    undealt += allowance.allowance() - has;
    allowance.set_allowance(has);
  }
  if (undealt <= 0) {
    at(peak_, pool, metric) -= undealt;
    undealt = 0;
    return;
  }
  const std::int64_t share = undealt / shares;
  for (Arena* const busy : busy_) {
    Counter& allowance = allowance_of(busy->counters, pool, metric);
    allowance.set_allowance(allowance.allowance() + share);
  }
  undealt -= share * (shares - 1);
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
    for (int pool = 0; pool < 3; ++pool) {
      at(peak_, pool, to) = at(peak_, pool, from);
      at(undealt_, pool, to) = at(undealt_, pool, from);
      at(base_, pool, to) = at(base_, pool, from);
    }
  }
}

Stat Peaks::stat(int pool, Metric metric) const {
  std::lock_guard lock(mutex_);
  if (!counts_active_ && metric == kActive) metric = kAllocation;
  if (!counts_active_ && metric == kActiveBytes) metric = kAllocatedBytes;
  const Sum sum = sum_locked(pool, metric);
  const Sum& base = at(base_, pool, metric);
  Stat stat;
  stat.current = sum.current;
  stat.peak = std::max(at(peak_, pool, metric), sum.current);
  stat.allocated = sum.came - base.came;
  stat.freed = (sum.came - sum.current) - base.current;
  return stat;
}

void Peaks::reset(bool peaks, bool accumulated) {
  std::lock_guard lock(mutex_);
  for_each_gauge([&](int pool, int metric) {
    const Sum sum = sum_locked(pool, metric);
    if (accumulated) at(base_, pool, metric) = {sum.came - sum.current, sum.came};
    if (!peaks) return;
    at(peak_, pool, metric) = sum.current;
    at(undealt_, pool, metric) = 0;
    for (Arena* arena : all_)
      allowance_of(arena->counters, pool, metric).set_allowance(current_of(arena->counters, pool, metric));
  });
}

void Peaks::check_invariants() const {
  std::lock_guard lock(mutex_);
  for_each_gauge([&](int pool, int metric) {
    std::int64_t dealt = 0;
    for (Arena* arena : all_) dealt += allowance_of(arena->counters, pool, metric).allowance();
    if (dealt + at(undealt_, pool, metric) != at(peak_, pool, metric))
      throw Error("caching: allowances of " + std::to_string(dealt) + " and " +
                  std::to_string(at(undealt_, pool, metric)) + " that are not dealt out do not add up to the peak of " +
                  std::to_string(at(peak_, pool, metric)));
  });
}

}  // namespace tenon::caching
