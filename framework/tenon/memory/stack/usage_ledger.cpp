// Settling between shards, and reading all of them: see Note [Escrowed peaks].
#include <tenon/memory/stack/usage_ledger.h>

#include <algorithm>

namespace tenon {

/// Holds the ledger's mutex, with every shard's owner out and barred. A thread must not be inside its own shard.
class UsageLedger::Stopped {
 public:
  explicit Stopped(const UsageLedger& ledger) : ledger_(ledger) {
    if (ledger_.serialised_) return;
    ledger_.mutex_.lock();
    bool any = false;
    const int own = thread_slot();
    for (int i = 0; i < ledger_.shard_count_; ++i) {
      Shard& shard = ledger_.shards_[i];
      // This thread's own shard needs no barrier against itself; the common one has other owners.
      if (!shard.used || (i == own && i != kSharedThreadSlot)) continue;
      shard.lock.bar();
      any = true;
    }
    if (!any) return;
    heavy_barrier();
    for (int i = 0; i < ledger_.shard_count_; ++i) {
      if (ledger_.shards_[i].used && (i != own || i == kSharedThreadSlot)) ledger_.shards_[i].lock.wait_until_out();
    }
  }
  ~Stopped() {
    if (ledger_.serialised_) return;
    for (int i = 0; i < ledger_.shard_count_; ++i) {
      if (ledger_.shards_[i].used) ledger_.shards_[i].lock.unbar();
    }
    ledger_.mutex_.unlock();
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

 private:
  const UsageLedger& ledger_;
};

UsageLedger::UsageLedger(bool serialised)
    : serialised_(serialised), shard_count_(serialised ? 1 : kThreadSlots), shards_(new Shard[shard_count_]) {}

UsageLedger::~UsageLedger() = default;

void UsageLedger::enter_slowly(Shard& shard, int slot) noexcept {
  if (slot == kSharedThreadSlot) shard.shared.lock();
  while (!shard.lock.try_enter()) {
    // Barred: either never used, or somebody settles, who holds the mutex for as long as that takes.
    std::lock_guard guard(mutex_);
    if (!shard.used) {
      shard.used = true;
      shard.lock.unbar();
    }
  }
}

void UsageLedger::settle(const Shard& asking) noexcept {
  Stopped stopped(*this);
  int others = 0;
  for (int i = 0; i < shard_count_; ++i) others += shards_[i].used && &shards_[i] != &asking ? 1 : 0;
  // Half of the headroom to whoever asks, the rest to the others: threads that go up and down in turn do not take it
  // from each other at every step. All of it to one that asks twice running: it grows while the others shrink.
  const bool asks_again = last_asking_ == &asking;
  last_asking_ = &asking;
  for (int gauge = 0; gauge < kGauges; ++gauge) {
    std::int64_t sum = 0;
    for (int i = 0; i < shard_count_; ++i) sum += shards_[i].counts[gauge].current;
    if (sum > peaks_[gauge]) peaks_[gauge] = sum;
    const std::int64_t headroom = peaks_[gauge] - sum;
    const std::int64_t share = others == 0 || asks_again ? 0 : headroom / 2 / others;
    for (int i = 0; i < shard_count_; ++i) {
      Count& count = shards_[i].counts[gauge];
      if (&shards_[i] == &asking) {
        count.limit = count.current + headroom - share * others;
      } else {
        count.limit = count.current + (shards_[i].used ? share : 0);
      }
    }
  }
}

Stat UsageLedger::total_locked(int gauge) const {
  Stat total;
  for (int i = 0; i < shard_count_; ++i) {
    total.current += shards_[i].counts[gauge].current;
    total.allocated += shards_[i].counts[gauge].allocated;
  }
  total.freed = origin_[gauge] + total.allocated - total.current;
  // A thread that went over its limit may not have settled yet; what is seen here was, all the same.
  total.peak = peaks_[gauge] = std::max(peaks_[gauge], total.current);
  return total;
}

void UsageLedger::read(MemoryStats& stats) const {
  Stopped stopped(*this);
  stats.requested_bytes = total_locked(kRequested);
  stats.allocated_bytes = total_locked(kAllocated);
  stats.allocations = total_locked(kBlocks);
  for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
    stats.requested_by_purpose[purpose] = total_locked(kFirstPurpose + purpose);
  }
}

std::int64_t UsageLedger::allocated_bytes() const {
  Stopped stopped(*this);
  return total_locked(kAllocated).current;
}

std::int64_t UsageLedger::live_blocks() const {
  Stopped stopped(*this);
  return total_locked(kBlocks).current;
}

void UsageLedger::reset_peak() {
  Stopped stopped(*this);
  for (int gauge = 0; gauge < kGauges; ++gauge) {
    peaks_[gauge] = total_locked(gauge).current;
    for (int i = 0; i < shard_count_; ++i) shards_[i].counts[gauge].limit = shards_[i].counts[gauge].current;
  }
}

void UsageLedger::reset_accumulated() {
  Stopped stopped(*this);
  for (int gauge = 0; gauge < kGauges; ++gauge) {
    // freed = origin + allocated - current, where origin is what was live when the sums began.
    origin_[gauge] = 0;
    for (int i = 0; i < shard_count_; ++i) {
      shards_[i].counts[gauge].allocated = 0;
      origin_[gauge] += shards_[i].counts[gauge].current;
    }
  }
}

}  // namespace tenon
