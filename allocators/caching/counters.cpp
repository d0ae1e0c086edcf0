// Exact peaks over many streams without a shared counter: allowances that add up to the known peak.
#include "counters.h"

#include <algorithm>

namespace tenon::caching {

void Peaks::add(Counters& counters) {
  std::lock_guard lock(mutex_);
  all_.push_back(&counters);  // its allowances are 0: the first allocation settles
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
  for (const Counters* counters : all_) {
    sum.current += current_of(*counters, pool, metric);
    for (const int kind : {0, 1})
      if (pool == 0 || pool == kind + 1)
        sum.came += counters->of[static_cast<std::size_t>(kind)][static_cast<std::size_t>(metric)].came();
  }
  return sum;
}

void Peaks::deal_locked(int pool, int metric, std::int64_t slack) {
  const std::int64_t share = slack / static_cast<std::int64_t>(all_.size());
  for (Counters* counters : all_)
    allowance_of(*counters, pool, metric).set_allowance(current_of(*counters, pool, metric) + share);
}

void Peaks::settle() {
  std::lock_guard lock(mutex_);
  for (int pool = 0; pool < 3; ++pool) {
    for (int metric = 0; metric < kMetrics; ++metric) {
      const auto exceeded = [&](Counters* counters) {
        return current_of(*counters, pool, metric) > allowance_of(*counters, pool, metric).allowance();
      };
      if (std::none_of(all_.begin(), all_.end(), exceeded)) continue;
      std::int64_t& peak = peak_[static_cast<std::size_t>(pool)][static_cast<std::size_t>(metric)];
      const std::int64_t current = sum_locked(pool, metric).current;
      peak = std::max(peak, current);
      deal_locked(pool, metric, peak - current);
    }
  }
}

void Peaks::count_active() {
  std::lock_guard lock(mutex_);
  if (counts_active_) return;
  counts_active_ = true;
  for (const auto& [to, from] : {std::pair{kActive, kAllocation}, std::pair{kActiveBytes, kAllocatedBytes}}) {
    for (Counters* counters : all_) {
      for (auto& kind : counters->of) kind[to].copy_from(kind[from]);
      counters->both[to].copy_from(counters->both[from]);
    }
    for (std::size_t pool = 0; pool < 3; ++pool) {
      peak_[pool][to] = peak_[pool][from];
      base_[pool][to] = base_[pool][from];
    }
  }
}

Stat Peaks::stat(int pool, Metric metric) const {
  std::lock_guard lock(mutex_);
  if (!counts_active_ && metric == kActive) metric = kAllocation;
  if (!counts_active_ && metric == kActiveBytes) metric = kAllocatedBytes;
  const Sum sum = sum_locked(pool, metric);
  const Sum& base = base_[static_cast<std::size_t>(pool)][metric];
  Stat stat;
  stat.current = sum.current;
  stat.peak = std::max(peak_[static_cast<std::size_t>(pool)][metric], sum.current);
  stat.allocated = sum.came - base.came;
  stat.freed = (sum.came - sum.current) - base.current;
  return stat;
}

void Peaks::reset(bool peaks, bool accumulated) {
  std::lock_guard lock(mutex_);
  if (all_.empty()) return;
  for (int pool = 0; pool < 3; ++pool) {
    for (int metric = 0; metric < kMetrics; ++metric) {
      const Sum sum = sum_locked(pool, metric);
      if (accumulated)
        base_[static_cast<std::size_t>(pool)][static_cast<std::size_t>(metric)] = {sum.came - sum.current, sum.came};
      if (!peaks) continue;
      peak_[static_cast<std::size_t>(pool)][static_cast<std::size_t>(metric)] = sum.current;
      deal_locked(pool, metric, 0);
    }
  }
}

}  // namespace tenon::caching
