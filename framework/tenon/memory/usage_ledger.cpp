// Counting in shards, settling between them: see Note [Escrowed peaks].
#include <tenon/memory/thread_slot.h>
#include <tenon/memory/usage_ledger.h>

#include <limits>
#include <thread>

namespace tenon {

struct alignas(128) UsageLedger::Shard {
  std::atomic<bool> busy{false};
  std::atomic<bool> used{false};
  struct Count {
    std::int64_t current = 0;
    std::int64_t limit = 0;      // current may rise to here without asking
    std::int64_t allocated = 0;  // sum of all increases
  };
  std::array<Count, kGauges> counts;

  void lock() noexcept {
    for (int spins = 0; busy.exchange(true, std::memory_order_acquire); ++spins) {
      while (busy.load(std::memory_order_relaxed)) {
        if (++spins > 100) {
          std::this_thread::yield();
          spins = 0;
        }
      }
    }
  }
  void unlock() noexcept { busy.store(false, std::memory_order_release); }
};

/// Every shard's lock at once, in order.
class UsageLedger::AllShards {
 public:
  explicit AllShards(const UsageLedger& ledger) : ledger_(ledger) {
    if (ledger_.serialised_) return;
    for (int i = 0; i < kThreadSlots; ++i) ledger_.shards_[i].lock();
  }
  ~AllShards() {
    if (ledger_.serialised_) return;
    for (int i = kThreadSlots; i-- > 0;) ledger_.shards_[i].unlock();
  }
  AllShards(const AllShards&) = delete;
  AllShards& operator=(const AllShards&) = delete;

 private:
  const UsageLedger& ledger_;
};

UsageLedger::UsageLedger(bool serialised)
    : serialised_(serialised), shards_(new Shard[serialised ? 1 : kThreadSlots]) {}

UsageLedger::~UsageLedger() = default;

UsageLedger::Shard& UsageLedger::shard_of_thread() const noexcept { return shards_[thread_slot()]; }

bool UsageLedger::count(Shard& shard, int gauge, std::int64_t amount) noexcept {
  Shard::Count& count = shard.counts[gauge];
  count.current += amount;
  count.allocated += amount;
  return count.current > count.limit;
}

void UsageLedger::add(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
  const auto requested = static_cast<std::int64_t>(requested_bytes);
  const int purpose_gauge = kFirstPurpose + static_cast<int>(purpose);
  if (serialised_) {
    Shard& shard = shards_[0];
    // Alone, the limit is the peak.
    const auto rise = [&shard](int gauge, std::int64_t amount) {
      if (count(shard, gauge, amount)) shard.counts[gauge].limit = shard.counts[gauge].current;
    };
    rise(kRequested, requested);
    rise(kAllocated, static_cast<std::int64_t>(block_bytes));
    rise(kBlocks, 1);
    rise(purpose_gauge, requested);
    return;
  }
  Shard& shard = shard_of_thread();
  shard.lock();
  bool over = count(shard, kRequested, requested);
  over |= count(shard, kAllocated, static_cast<std::int64_t>(block_bytes));
  over |= count(shard, kBlocks, 1);
  over |= count(shard, purpose_gauge, requested);
  shard.unlock();
  if (over) settle(shard);
}

void UsageLedger::remove(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
  const auto requested = static_cast<std::int64_t>(requested_bytes);
  Shard& shard = serialised_ ? shards_[0] : shard_of_thread();
  if (!serialised_) shard.lock();
  shard.counts[kRequested].current -= requested;
  shard.counts[kAllocated].current -= static_cast<std::int64_t>(block_bytes);
  shard.counts[kBlocks].current -= 1;
  shard.counts[kFirstPurpose + static_cast<int>(purpose)].current -= requested;
  if (!serialised_) shard.unlock();
}

void UsageLedger::settle(const Shard& asking) const {
  std::lock_guard guard(mutex_);
  AllShards all(*this);
  shards_[&asking - shards_.get()].used.store(true, std::memory_order_relaxed);
  int others = 0;
  for (int i = 0; i < kThreadSlots; ++i) {
    others += (&shards_[i] != &asking && shards_[i].used.load(std::memory_order_relaxed)) ? 1 : 0;
  }
  for (int gauge = 0; gauge < kGauges; ++gauge) {
    std::int64_t sum = 0;
    for (int i = 0; i < kThreadSlots; ++i) sum += shards_[i].counts[gauge].current;
    if (sum > peaks_[gauge]) peaks_[gauge] = sum;
    // Half of the headroom to whoever asked, the rest to the others that count here: growing threads ask a logarithmic
    // number of times, and threads that go up and down in turn do not take it from each other at every step.
    const std::int64_t headroom = peaks_[gauge] - sum;
    const std::int64_t share = others == 0 ? 0 : headroom / 2 / others;
    for (int i = 0; i < kThreadSlots; ++i) {
      Shard::Count& count = shards_[i].counts[gauge];
      const bool gets_share = shards_[i].used.load(std::memory_order_relaxed);
      count.limit = count.current + (&shards_[i] == &asking ? headroom - share * others : gets_share ? share : 0);
    }
  }
}

Stat UsageLedger::total_locked(int gauge) const {
  Stat total;
  const int shards = serialised_ ? 1 : kThreadSlots;
  for (int i = 0; i < shards; ++i) {
    total.current += shards_[i].counts[gauge].current;
    total.allocated += shards_[i].counts[gauge].allocated;
  }
  total.freed = origin_[gauge] + total.allocated - total.current;
  total.peak = serialised_ ? shards_[0].counts[gauge].limit : peaks_[gauge];
  return total;
}

void UsageLedger::read(MemoryStats& stats) const {
  std::lock_guard guard(mutex_);
  AllShards all(*this);
  stats.requested_bytes = total_locked(kRequested);
  stats.allocated_bytes = total_locked(kAllocated);
  stats.allocations = total_locked(kBlocks);
  for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
    stats.requested_by_purpose[purpose] = total_locked(kFirstPurpose + purpose);
  }
}

std::int64_t UsageLedger::allocated_bytes() const {
  std::lock_guard guard(mutex_);
  AllShards all(*this);
  return total_locked(kAllocated).current;
}

std::int64_t UsageLedger::live_blocks() const {
  std::lock_guard guard(mutex_);
  AllShards all(*this);
  return total_locked(kBlocks).current;
}

void UsageLedger::reset_peak() {
  std::lock_guard guard(mutex_);
  AllShards all(*this);
  const int shards = serialised_ ? 1 : kThreadSlots;
  for (int gauge = 0; gauge < kGauges; ++gauge) {
    peaks_[gauge] = total_locked(gauge).current;
    for (int i = 0; i < shards; ++i) shards_[i].counts[gauge].limit = shards_[i].counts[gauge].current;
  }
}

void UsageLedger::reset_accumulated() {
  std::lock_guard guard(mutex_);
  AllShards all(*this);
  const int shards = serialised_ ? 1 : kThreadSlots;
  for (int gauge = 0; gauge < kGauges; ++gauge) {
    // freed = origin + allocated - current, where origin is what was live when the sums began.
    for (int i = 0; i < shards; ++i) shards_[i].counts[gauge].allocated = 0;
    origin_[gauge] = 0;
    for (int i = 0; i < shards; ++i) origin_[gauge] += shards_[i].counts[gauge].current;
  }
}

}  // namespace tenon
