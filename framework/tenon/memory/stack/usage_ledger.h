// UsageLedger: what is live by size, count and purpose, with exact peaks, cheap enough to be always on.
// Threads count in shards of their own: see Note [Escrowed peaks] in escrowed_peak.h.
#pragma once

#include <tenon/memory/concurrent/biased_lock.h>
#include <tenon/memory/concurrent/escrowed_peak.h>
#include <tenon/memory/concurrent/thread_slot.h>
#include <tenon/memory/stats.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

namespace tenon {

class UsageLedger {
 public:
  /// `serialised`: the caller holds one lock around every call, so one shard is enough and needs no lock of its own.
  explicit UsageLedger(bool serialised);
  ~UsageLedger();
  UsageLedger(const UsageLedger&) = delete;
  UsageLedger& operator=(const UsageLedger&) = delete;

  void add(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
    const auto requested = static_cast<std::int64_t>(requested_bytes);
    const auto allocated = static_cast<std::int64_t>(block_bytes);
    const int by_purpose = kFirstPurpose + static_cast<int>(purpose);
    Shard& shard = enter();
    bool over = shard.counts[kRequested].increase(requested) > shard.counts[kRequested].allowance();
    over |= shard.counts[kAllocated].increase(allocated) > shard.counts[kAllocated].allowance();
    over |= shard.counts[kBlocks].increase(1) > shard.counts[kBlocks].allowance();
    over |= shard.counts[by_purpose].increase(requested) > shard.counts[by_purpose].allowance();
    leave(shard);
    if (over) [[unlikely]]
      settle(shard);
  }

  void remove(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
    const auto requested = static_cast<std::int64_t>(requested_bytes);
    Shard& shard = enter();
    shard.counts[kRequested].decrease(requested);
    shard.counts[kAllocated].decrease(static_cast<std::int64_t>(block_bytes));
    shard.counts[kBlocks].decrease(1);
    shard.counts[kFirstPurpose + static_cast<int>(purpose)].decrease(requested);
    leave(shard);
  }

  /// Fills in the figures that are counted here.
  void read(MemoryStats& stats) const;
  std::int64_t allocated_bytes() const;
  std::int64_t live_blocks() const;
  // The same where calls are serialised, without a look around.
  std::size_t requested_by_one_thread() const { return of_one_thread(kRequested); }
  std::size_t allocated_by_one_thread() const { return of_one_thread(kAllocated); }
  void reset_peak();
  void reset_accumulated();

 private:
  enum Gauge { kRequested, kAllocated, kBlocks, kFirstPurpose, kGauges = kFirstPurpose + kPurposeCount };

  struct alignas(128) Shard {
    BiasedLock lock;  ///< nearly always taken by the thread whose slot it is
    std::array<EscrowedCount, kGauges> counts;
  };

  class Stopped;  ///< nobody counts meanwhile

  Shard& enter() noexcept {
    if (serialised_) return shards_[0];
    Shard& shard = shards_[thread_slot()];
    shard.lock.lock();
    return shard;
  }
  void leave(Shard& shard) noexcept {
    if (!serialised_) shard.lock.unlock();
  }
  std::size_t of_one_thread(std::size_t gauge) const {
    return static_cast<std::size_t>(shards_[0].counts[gauge].current());
  }
  void settle(Shard& asking) noexcept;
  static EscrowSum sum(std::span<const Shard> shards, int gauge);

  const bool serialised_;
  mutable std::mutex mutex_;  ///< of who stops all shards
  const std::unique_ptr<Shard[]> shards_;
  mutable std::array<EscrowedPeak, kGauges> peaks_;  ///< guarded by mutex_, or by the caller where serialised
};

}  // namespace tenon
