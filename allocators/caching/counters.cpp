// Exact peaks over many streams without a shared counter: allowances that add up to the known peak.
#include "counters.h"

#include <algorithm>

namespace tenon::caching {

void Peaks::add(Counters& counters) {
  std::lock_guard lock(mutex_);
  all_.push_back(&counters);  // its allowances are 0: the first allocation settles
}

Peaks::Sum Peaks::sum_locked(int pool, int metric) const {
  Sum sum;
  for (const Counters* counters : all_) {
    const Counter& counter = counters->of[static_cast<std::size_t>(pool)][static_cast<std::size_t>(metric)];
    sum.current += counter.current();
    sum.came += counter.came();
  }
  return sum;
}

void Peaks::deal_locked(int pool, int metric, std::int64_t slack) {
  const std::int64_t share = slack / static_cast<std::int64_t>(all_.size());
  for (Counters* counters : all_) {
    Counter& counter = counters->of[static_cast<std::size_t>(pool)][static_cast<std::size_t>(metric)];
    counter.set_allowance(counter.current() + share);
  }
}

void Peaks::settle() {
  std::lock_guard lock(mutex_);
  for (int pool = 0; pool < 3; ++pool) {
    for (int metric = 0; metric < kMetrics; ++metric) {
      const auto exceeded = [&](const Counters* counters) {
        const Counter& counter = counters->of[static_cast<std::size_t>(pool)][static_cast<std::size_t>(metric)];
        return counter.current() > counter.allowance();
      };
      if (std::none_of(all_.begin(), all_.end(), exceeded)) continue;
      std::int64_t& peak = peak_[static_cast<std::size_t>(pool)][static_cast<std::size_t>(metric)];
      const std::int64_t current = sum_locked(pool, metric).current;
      peak = std::max(peak, current);
      deal_locked(pool, metric, peak - current);
    }
  }
}

Stat Peaks::stat(int pool, Metric metric) const {
  std::lock_guard lock(mutex_);
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
