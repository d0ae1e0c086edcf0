// UsageLedger: what is live by size, count and purpose, with exact peaks, cheap enough to be always on.
//
// Note [Escrowed peaks]
// Threads count in shards of their own, yet the peak is that of the sum. Each shard holds a limit beside its current
// value, and the limits of all shards add up to no more than the peak seen so far. A thread that stays within its limit
// cannot raise the sum above the peak, so it touches only its own line. One that passes its limit stops all the others,
// adds up, raises the peak if the sum passed it, and deals out the headroom (peak - sum) anew. The peak is thus the
// maximum of a sum that really was: in a sequential program the exact one, in a concurrent one that of a linearisation.
#pragma once

#include <tenon/memory/stack/owner_lock.h>
#include <tenon/memory/stats.h>
#include <tenon/memory/thread_slot.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

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
    bool over = shard.counts[kRequested].rise(requested);
    over |= shard.counts[kAllocated].rise(allocated);
    over |= shard.counts[kBlocks].rise(1);
    over |= shard.counts[by_purpose].rise(requested);
    leave(shard);
    if (over) [[unlikely]]
      settle(shard);
  }

  void remove(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept {
    const auto requested = static_cast<std::int64_t>(requested_bytes);
    Shard& shard = enter();
    shard.counts[kRequested].current -= requested;
    shard.counts[kAllocated].current -= static_cast<std::int64_t>(block_bytes);
    shard.counts[kBlocks].current -= 1;
    shard.counts[kFirstPurpose + static_cast<int>(purpose)].current -= requested;
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

  struct Count {
    std::int64_t current = 0;
    std::int64_t limit = 0;      ///< current may rise to here without asking
    std::int64_t allocated = 0;  ///< sum of all increases

    bool rise(std::int64_t amount) noexcept {
      current += amount;
      allocated += amount;
      return current > limit;
    }
  };

  struct alignas(128) Shard {
    OwnerLock lock{has_heavy_barrier()};
    std::mutex shared;  ///< only of the slot that threads have in common: one of them is the owner at a time
    bool used = false;
    std::array<Count, kGauges> counts;
  };

  class Stopped;  ///< every other thread's counting stands still

  Shard& enter() noexcept {
    if (serialised_) return shards_[0];
    const int slot = thread_slot();
    Shard& shard = shards_[slot];
    if (slot == kSharedThreadSlot || !shard.lock.try_enter()) [[unlikely]]
      enter_slowly(shard, slot);
    return shard;
  }
  void leave(Shard& shard) noexcept {
    if (serialised_) return;
    shard.lock.leave();
    if (&shard == &shards_[kSharedThreadSlot]) [[unlikely]]
      shard.shared.unlock();
  }
  std::size_t of_one_thread(int gauge) const { return static_cast<std::size_t>(shards_[0].counts[gauge].current); }
  void enter_slowly(Shard& shard, int slot) noexcept;
  void settle(const Shard& asking) noexcept;
  Stat total_locked(int gauge) const;

  const bool serialised_;
  const int shard_count_;
  mutable std::mutex mutex_;
  std::unique_ptr<Shard[]> shards_;
  // Guarded by mutex_ (or by the caller, where serialised).
  const Shard* last_asking_ = nullptr;
  mutable std::array<std::int64_t, kGauges> peaks_{};
  std::array<std::int64_t, kGauges> origin_{};  ///< what was live when the accumulated sums were last set to 0
};

}  // namespace tenon
