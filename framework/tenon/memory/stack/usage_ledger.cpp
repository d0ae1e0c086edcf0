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
    for (Shard& shard : shards_) shard.lock.lock();
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

void UsageLedger::add_shared(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
  Shard& shard = shards_[static_cast<std::size_t>(thread_slot())];
  bool over;
  {
    const BiasedLock::Guard guard(shard.lock);
    over = shard.add(requested_bytes, block_bytes, purpose);
  }
  if (over) settle(shard);
}

void UsageLedger::remove_shared(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
  Shard& shard = shards_[static_cast<std::size_t>(thread_slot())];
  const BiasedLock::Guard guard(shard.lock);
  shard.remove(requested_bytes, block_bytes, purpose);
}

void UsageLedger::settle(Shard& asking) noexcept {
  const Stopped stopped(*this);
  for (std::size_t gauge = 0; gauge < kGauges; ++gauge) {
    const auto share_of = [gauge](Shard& shard) -> EscrowShareOf<StoppedCount> {
      return {shard.counts[gauge].current(), shard.counts[gauge]};
    };
    const auto own = share_of(asking);
    if (own.current > own.allowance.allowance()) peaks_[gauge].grant(own, stopped.shards(), share_of);
  }
}

EscrowSum UsageLedger::sum(std::span<const Shard> shards, int gauge) {
  EscrowSum sum;
  for (const Shard& shard : shards) {
    const auto at = static_cast<std::size_t>(gauge);
    sum.current += shard.counts[at].current();
    sum.came += shard.came(at);
  }
  return sum;
}

void UsageLedger::read(MemoryStats& stats) const {
  const Stopped stopped(*this);
  const auto stat = [&](int gauge) {
    EscrowedPeak& peak = peaks_[static_cast<std::size_t>(gauge)];
    const EscrowSum total = sum(stopped.shards(), gauge);
    peak.see(total);
    return peak.stat(total);
  };
  stats.requested_bytes = stat(kRequested);
  stats.allocated_bytes = stat(kAllocated);
  stats.allocations = stat(kBlocks);
  for (int purpose = 0; purpose < kPurposeCount; ++purpose)
    stats.requested_by_purpose[static_cast<std::size_t>(purpose)] = stat(kFirstPurpose + purpose);
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
  for (int gauge = 0; gauge < kGauges; ++gauge) {
    const auto at = static_cast<std::size_t>(gauge);
    peaks_[at].reset_peak(sum(stopped.shards(), gauge).current, stopped.shards(),
                          [at](Shard& shard) -> EscrowShareOf<StoppedCount> {
                            return {shard.counts[at].current(), shard.counts[at]};
                          });
  }
}

void UsageLedger::reset_accumulated() {
  const Stopped stopped(*this);
  for (int gauge = 0; gauge < kGauges; ++gauge)
    peaks_[static_cast<std::size_t>(gauge)].reset_accumulated(sum(stopped.shards(), gauge));
}

}  // namespace tenon
