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

  [[gnu::always_inline]] void add(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
    Shard& shard = shard_of_thread();
    bool over;
    if (!serialised_) [[likely]] {
      const BiasedLock::Guard guard(shard.lock);
      over = shard.add(requested_bytes, block_bytes, purpose);
    } else {
      over = shard.add(requested_bytes, block_bytes, purpose);
    }
    if (over) [[unlikely]]
      settle(shard);
  }

  [[gnu::always_inline]] void remove(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
    Shard& shard = shard_of_thread();
    if (!serialised_) [[likely]] {
      const BiasedLock::Guard guard(shard.lock);
      shard.remove(requested_bytes, block_bytes, purpose);
    } else {
      shard.remove(requested_bytes, block_bytes, purpose);
    }
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

    /// Whether an allowance is exceeded: settle() is then due.
    [[gnu::always_inline]] bool add(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
      const auto requested = static_cast<std::int64_t>(requested_bytes);
      bool over = rise(kRequested, requested);
      over |= rise(kAllocated, static_cast<std::int64_t>(block_bytes));
      over |= rise(kBlocks, 1);
      over |= rise(kFirstPurpose + static_cast<std::size_t>(purpose), requested);
      return over;
    }
    [[gnu::always_inline]] void remove(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
      const auto requested = static_cast<std::int64_t>(requested_bytes);
      counts[kRequested].decrease(requested);
      counts[kAllocated].decrease(static_cast<std::int64_t>(block_bytes));
      counts[kBlocks].decrease(1);
      counts[kFirstPurpose + static_cast<std::size_t>(purpose)].decrease(requested);
    }

   private:
    bool rise(std::size_t gauge, std::int64_t amount) noexcept {
      return counts[gauge].increase(amount) > counts[gauge].allowance();
    }
  };

  class Stopped;  ///< no thread counts meanwhile

  Shard& shard_of_thread() const noexcept { return shards_[serialised_ ? 0 : thread_slot()]; }

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
