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
    serialised_ ? add_serialised(requested_bytes, block_bytes, purpose)
                : add_shared(requested_bytes, block_bytes, purpose);
  }
  void remove(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
    serialised_ ? remove_serialised(requested_bytes, block_bytes, purpose)
                : remove_shared(requested_bytes, block_bytes, purpose);
  }

  // The same by who knows which of the two this ledger is.

  [[gnu::always_inline]] void add_serialised(std::size_t requested_bytes, std::size_t block_bytes,
                                             Purpose purpose) noexcept {
    Shard& shard = shards_[0];
    if (shard.add(requested_bytes, block_bytes, purpose)) [[unlikely]]
      settle(shard);
  }
  [[gnu::always_inline]] void remove_serialised(std::size_t requested_bytes, std::size_t block_bytes,
                                                Purpose purpose) noexcept {
    shards_[0].remove(requested_bytes, block_bytes, purpose);
  }
  void add_shared(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept;
  void remove_shared(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept;

  // The same in a few steps. False where it takes more than those, and nothing has been counted then.

  [[gnu::always_inline]] bool try_add_shared(std::size_t requested_bytes, std::size_t block_bytes,
                                             Purpose purpose) noexcept {
    Shard* const shard = own_shard();
    if (!shard) [[unlikely]]
      return false;
    const bool over = shard->add(requested_bytes, block_bytes, purpose);
    shard->lock.leave_owned();
    if (over) [[unlikely]]
      settle(*shard);
    return true;
  }
  [[gnu::always_inline]] bool try_remove_shared(std::size_t requested_bytes, std::size_t block_bytes,
                                                Purpose purpose) noexcept {
    Shard* const shard = own_shard();
    if (!shard) [[unlikely]]
      return false;
    shard->remove(requested_bytes, block_bytes, purpose);
    shard->lock.leave_owned();
    return true;
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
    BiasedLock lock;                           ///< nearly always taken by the thread whose slot it is
    std::array<StoppedCount, kGauges> counts;  ///< guarded by it, or by the caller where serialised

    /// Whether an allowance is exceeded: settle() is then due.
    [[gnu::always_inline]] bool add(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
      const auto requested = static_cast<std::int64_t>(requested_bytes);
      bool over = counts[kRequested].increase_uncounted(requested);  // what came is the sum over all purposes
      over |= counts[kAllocated].increase(static_cast<std::int64_t>(block_bytes));
      over |= counts[kBlocks].increase(1);
      over |= counts[kFirstPurpose + static_cast<std::size_t>(purpose)].increase(requested);
      return over;
    }
    [[gnu::always_inline]] void remove(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
      const auto requested = static_cast<std::int64_t>(requested_bytes);
      counts[kRequested].decrease(requested);
      counts[kAllocated].decrease(static_cast<std::int64_t>(block_bytes));
      counts[kBlocks].decrease(1);
      counts[kFirstPurpose + static_cast<std::size_t>(purpose)].decrease(requested);
    }
    std::int64_t came(std::size_t gauge) const noexcept {
      if (gauge != kRequested) return counts[gauge].came();
      std::int64_t sum = 0;
      for (std::size_t purpose = kFirstPurpose; purpose < kGauges; ++purpose) sum += counts[purpose].came();
      return sum;
    }
  };

  class Stopped;  ///< no thread counts meanwhile

  /// That of the thread, whose lock it has entered as its owner; null where that takes longer.
  [[gnu::always_inline]] Shard* own_shard() noexcept {
    const int slot = detail::thread_slot_or_none;
    if (slot < 0) [[unlikely]]
      return nullptr;
    Shard& shard = shards_[static_cast<std::size_t>(slot)];
    if (shard.lock.try_enter_owned()) [[likely]]
      return &shard;
    return nullptr;
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
