// UsageLedger: what is live by size, count, purpose and kind of elements, with exact peaks, cheap enough to be always
// on. Threads count in shards of their own: see Note [Escrowed peaks] in escrowed_peak.h.
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

  void add(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose,
           ElementKind kind = ElementKind::kUntyped) noexcept {
    serialised_ ? add_serialised(requested_bytes, block_bytes, purpose, kind)
                : add_shared(requested_bytes, block_bytes, purpose, kind);
  }
  void remove(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose,
              ElementKind kind = ElementKind::kUntyped) noexcept {
    serialised_ ? remove_serialised(requested_bytes, block_bytes, purpose, kind)
                : remove_shared(requested_bytes, block_bytes, purpose, kind);
  }

  // The same by who knows which of the two this ledger is.

  [[gnu::always_inline]] void add_serialised(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose,
                                             ElementKind kind) noexcept {
    Shard& shard = shards_[0];
    if (shard.add(requested_bytes, block_bytes, purpose, kind)) [[unlikely]]
      settle(shard, purpose, kind);
  }
  [[gnu::always_inline]] void remove_serialised(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose,
                                                ElementKind kind) noexcept {
    shards_[0].remove(requested_bytes, block_bytes, purpose, kind);
  }
  void add_shared(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose, ElementKind kind) noexcept;
  void remove_shared(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose, ElementKind kind) noexcept;

  // The same in a few steps. False where it takes more than those, and nothing has been counted then.

  [[gnu::always_inline]] bool try_add_shared(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose,
                                             ElementKind kind) noexcept {
    Shard* const shard = own_shard();
    if (!shard) [[unlikely]]
      return false;
    const bool over = shard->add(requested_bytes, block_bytes, purpose, kind);
    shard->lock.leave_owned();
    if (over) [[unlikely]]
      settle(*shard, purpose, kind);
    return true;
  }
  [[gnu::always_inline]] bool try_remove_shared(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose,
                                                ElementKind kind) noexcept {
    Shard* const shard = own_shard();
    if (!shard) [[unlikely]]
      return false;
    shard->remove(requested_bytes, block_bytes, purpose, kind);
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
  /// A purpose is counted as a whole, and behind that by kind of elements: one address leads to both.
  enum Gauge : std::size_t {
    kRequested,
    kAllocated,
    kBlocks,
    kFirstPurpose,
    kOfPurpose = 1 + kElementKindCount,
    kGauges = kFirstPurpose + kPurposeCount * kOfPurpose
  };
  static constexpr std::size_t gauge_of(Purpose purpose) {
    return kFirstPurpose + static_cast<std::size_t>(purpose) * kOfPurpose;
  }
  static constexpr std::size_t gauge_of(Purpose purpose, ElementKind kind) {
    return gauge_of(purpose) + 1 + static_cast<std::size_t>(kind);
  }

  struct alignas(128) Shard {
    BiasedLock lock;                           ///< nearly always taken by the thread whose slot it is
    std::array<StoppedCount, kGauges> counts;  ///< guarded by it, or by the caller where serialised

    /// Whether an allowance is exceeded: settle() is then due.
    [[gnu::always_inline]] bool add(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose,
                                    ElementKind kind) noexcept {
      const auto requested = static_cast<std::int64_t>(requested_bytes);
      // What came is a sum over purposes, of one purpose over kinds: it is counted once.
      bool over = counts[kRequested].increase_uncounted(requested);
      over |= counts[kAllocated].increase(static_cast<std::int64_t>(block_bytes));
      over |= counts[kBlocks].increase(1);
      over |= counts[gauge_of(purpose)].increase_uncounted(requested);
      over |= counts[gauge_of(purpose, kind)].increase(requested);
      return over;
    }
    [[gnu::always_inline]] void remove(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose,
                                       ElementKind kind) noexcept {
      const auto requested = static_cast<std::int64_t>(requested_bytes);
      counts[kRequested].decrease(requested);
      counts[kAllocated].decrease(static_cast<std::int64_t>(block_bytes));
      counts[kBlocks].decrease(1);
      counts[gauge_of(purpose)].decrease(requested);
      counts[gauge_of(purpose, kind)].decrease(requested);
    }
    std::int64_t came(std::size_t gauge) const noexcept {
      std::int64_t sum = 0;
      if (gauge == kRequested) {
        for (std::size_t of = kFirstPurpose; of < kGauges; of += kOfPurpose) sum += came(of);
        return sum;
      }
      if (gauge < kFirstPurpose || (gauge - kFirstPurpose) % kOfPurpose != 0) return counts[gauge].came();
      for (std::size_t kind = 1; kind < kOfPurpose; ++kind) sum += counts[gauge + kind].came();
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
  void settle(Shard& asking, Purpose purpose, ElementKind kind) noexcept;
  static EscrowSum sum(std::span<const Shard> shards, std::size_t gauge);

  const bool serialised_;
  mutable std::mutex mutex_;  ///< of who stops all shards
  const std::unique_ptr<Shard[]> shards_;
  mutable std::array<EscrowedPeak, kGauges> peaks_;  ///< guarded by mutex_, or by the caller where serialised
};

}  // namespace tenon
