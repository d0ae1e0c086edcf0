// Granting between shards, and reading all of them.
#include <tenon/memory/stack/usage_ledger.h>

namespace tenon {

/// Holds the lock of every shard that may be in use. The thread must not be inside one.
class UsageLedger::Stopped {
 public:
  explicit Stopped(const UsageLedger& ledger) : ledger_(ledger) {
    if (ledger_.serialised_) {
      shards_ = {ledger_.shards_.get(), 1};
      return;
    }
    ledger_.mutex_.lock();
    shards_ = {ledger_.shards_.get(), static_cast<std::size_t>(thread_slots_in_use())};
    BiasedLock::lock_all(shards_, [](Shard& shard) -> BiasedLock& { return shard.lock; });
  }
  ~Stopped() {
    if (ledger_.serialised_) return;
    for (Shard& shard : shards_) shard.lock.unlock();
    ledger_.mutex_.unlock();
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

  std::span<Shard> shards() const { return shards_; }

 private:
  const UsageLedger& ledger_;
  std::span<Shard> shards_;
};

UsageLedger::UsageLedger(bool serialised)
    : serialised_(serialised), shards_(new Shard[serialised ? 1 : kThreadSlots]) {}

UsageLedger::~UsageLedger() = default;

void UsageLedger::add_shared(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose,
                             ElementKind kind) noexcept {
  Shard& shard = shards_[static_cast<std::size_t>(thread_slot())];
  bool over;
  {
    const BiasedLock::Guard guard(shard.lock);
    over = shard.add(requested_bytes, block_bytes, purpose, kind);
  }
  if (over) settle(shard, purpose, kind);
}

void UsageLedger::remove_shared(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose,
                                ElementKind kind) noexcept {
  Shard& shard = shards_[static_cast<std::size_t>(thread_slot())];
  const BiasedLock::Guard guard(shard.lock);
  shard.remove(requested_bytes, block_bytes, purpose, kind);
}

void UsageLedger::settle(Shard& asking, Purpose purpose, ElementKind kind) noexcept {
  const Stopped stopped(*this);
  // Nothing else has just grown.
  for (const std::size_t gauge : {std::size_t{kRequested}, std::size_t{kAllocated}, std::size_t{kBlocks},
                                  gauge_of(purpose), gauge_of(purpose, kind)}) {
    const auto share_of = [gauge](Shard& shard) -> EscrowShareOf<StoppedCount> {
      return {shard.counts[gauge].current(), shard.counts[gauge]};
    };
    const auto own = share_of(asking);
    if (own.current > own.allowance.allowance()) peaks_[gauge].grant(own, stopped.shards(), share_of);
  }
}

EscrowSum UsageLedger::sum(std::span<const Shard> shards, std::size_t gauge) {
  EscrowSum sum;
  for (const Shard& shard : shards) {
    sum.current += shard.counts[gauge].current();
    sum.came += shard.came(gauge);
  }
  return sum;
}

void UsageLedger::read(MemoryStats& stats) const {
  const Stopped stopped(*this);
  const auto stat = [&](std::size_t gauge) {
    EscrowedPeak& peak = peaks_[gauge];
    const EscrowSum total = sum(stopped.shards(), gauge);
    peak.see(total);
    return peak.stat(total);
  };
  stats.requested_bytes = stat(kRequested);
  stats.allocated_bytes = stat(kAllocated);
  stats.allocations = stat(kBlocks);
  for (std::size_t purpose = 0; purpose < kPurposeCount; ++purpose) {
    stats.requested_by_purpose[purpose] = stat(gauge_of(static_cast<Purpose>(purpose)));
    for (std::size_t kind = 0; kind < kElementKindCount; ++kind)
      stats.requested_by_element[purpose][kind] =
          stat(gauge_of(static_cast<Purpose>(purpose), static_cast<ElementKind>(kind)));
  }
}

std::int64_t UsageLedger::allocated_bytes() const {
  const Stopped stopped(*this);
  return sum(stopped.shards(), kAllocated).current;
}

std::int64_t UsageLedger::live_blocks() const {
  const Stopped stopped(*this);
  return sum(stopped.shards(), kBlocks).current;
}

void UsageLedger::reset_peak() {
  const Stopped stopped(*this);
  for (std::size_t gauge = 0; gauge < kGauges; ++gauge) {
    peaks_[gauge].reset_peak(sum(stopped.shards(), gauge).current, stopped.shards(),
                             [gauge](Shard& shard) -> EscrowShareOf<StoppedCount> {
                               return {shard.counts[gauge].current(), shard.counts[gauge]};
                             });
  }
}

void UsageLedger::reset_accumulated() {
  const Stopped stopped(*this);
  for (std::size_t gauge = 0; gauge < kGauges; ++gauge) peaks_[gauge].reset_accumulated(sum(stopped.shards(), gauge));
}

}  // namespace tenon
