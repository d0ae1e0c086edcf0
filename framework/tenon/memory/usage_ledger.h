// UsageLedger: what is live by size, count and purpose, with exact peaks, cheap enough to be always on.
//
// Note [Escrowed peaks]
// Threads count in shards of their own, yet the peak is that of the sum. Each shard holds a limit beside its current
// value, and the limits of all shards add up to no more than the peak seen so far. A thread that stays within its limit
// cannot raise the sum above the peak, so it touches only its own line. One that passes its limit takes every shard's
// lock, adds up, raises the peak if the sum passed it, and deals out the headroom (peak - sum) anew. The peak is thus
// the maximum of a sum that really was: in a sequential program the exact one, in a concurrent one that of a
// linearisation.
#pragma once

#include <tenon/memory/stats.h>

#include <array>
#include <atomic>
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

  void add(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept;
  void remove(std::size_t requested_bytes, std::size_t block_bytes, Purpose purpose) noexcept;

  /// Fills in the figures that are counted here.
  void read(MemoryStats& stats) const;
  std::int64_t allocated_bytes() const;
  std::int64_t live_blocks() const;
  void reset_peak();
  void reset_accumulated();

 private:
  enum Gauge { kRequested, kAllocated, kBlocks, kFirstPurpose, kGauges = kFirstPurpose + kPurposeCount };
  struct Shard;
  class AllShards;

  Shard& shard_of_thread() const noexcept;
  static bool count(Shard& shard, int gauge, std::int64_t amount) noexcept;
  void settle(const Shard& asking) const;
  Stat total_locked(int gauge) const;

  const bool serialised_;
  mutable std::mutex mutex_;  ///< before any shard's lock
  std::unique_ptr<Shard[]> shards_;
  mutable std::array<std::int64_t, kGauges> peaks_{};
  std::array<std::int64_t, kGauges> origin_{};  ///< what was live when the accumulated sums were last set to 0
};

}  // namespace tenon
