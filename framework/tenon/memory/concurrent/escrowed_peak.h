// EscrowedPeak: the exact peak of a sum that many shards count at, without a line of memory that all of them write.
//
// Note [Escrowed peaks]
// Threads, or streams, count in shards of their own, yet the peak is that of the sum. Beside its current value each
// shard has an allowance; all allowances and what is not dealt out add up to the peak seen so far. A shard that stays
// within its allowance cannot raise the sum above the peak, so it touches only its own line. One that outgrows it asks,
// under one lock: it gets from what is not dealt out, else the slack of all the others is called in, and only if that
// is not enough the peak rises. The peak is thus the maximum of a sum that really was: in a sequential program the
// exact one, in a concurrent one that of a linearisation.
//
// For that the others stand still while a shard asks (UsageLedger). Where they count on (caching::Peaks), a shard
// writes what it has and then looks at its allowance; who calls in takes the allowance away and then, after
// heavy_barrier(), looks at what the other has. So the one sees the new count, or the other sees that it has to ask,
// which it does as soon as the caller is through. (Where there is no such barrier, a step that is counted in that
// moment may be missed.)
#pragma once

#include <tenon/memory/allocator.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tenon {

/// One shard's share of a sum. Written under its shard's lock only (the allowance: where shards ask); read by anyone,
/// hence atomic, but never a locked instruction.
class EscrowedCount {
 public:
  std::int64_t increase(std::int64_t amount) noexcept { return change(amount, amount); }
  /// Up or down; only what comes counts as come.
  std::int64_t change(std::int64_t amount) noexcept { return change(amount, std::max<std::int64_t>(amount, 0)); }
  void decrease(std::int64_t amount) noexcept { set(current_, get(current_) - amount); }
  std::int64_t current() const noexcept { return get(current_); }
  std::int64_t came() const noexcept { return get(came_); }
  std::int64_t allowance() const noexcept { return get(allowance_); }
  void set_allowance(std::int64_t value) noexcept { set(allowance_, value); }
  void copy_from(const EscrowedCount& other) noexcept {
    set(current_, get(other.current_));
    set(came_, get(other.came_));
    set(allowance_, get(other.allowance_));
  }

 private:
  using Value = std::atomic<std::int64_t>;
  static std::int64_t get(const Value& value) noexcept { return value.load(std::memory_order_relaxed); }
  static void set(Value& value, std::int64_t to) noexcept { value.store(to, std::memory_order_relaxed); }
  std::int64_t change(std::int64_t amount, std::int64_t coming) noexcept {
    const std::int64_t current = get(current_) + amount;
    set(current_, current);
    set(came_, get(came_) + coming);
    return current;
  }

  Value current_{0};
  Value came_{0};
  Value allowance_{0};
};

/// The same where nobody looks while the owner counts, and only rises are told from falls: what is left of the
/// allowance is kept, so that counting is one instruction and its sign says whether the allowance was exceeded.
class StoppedCount {
 public:
  /// Whether the allowance is exceeded now.
  bool increase(std::int64_t amount) noexcept {
    left_ -= amount;
    came_ += amount;
    return left_ < 0;
  }
  /// Likewise, for a count whose sum of all that came is known from elsewhere.
  bool increase_uncounted(std::int64_t amount) noexcept {
    left_ -= amount;
    return left_ < 0;
  }
  void decrease(std::int64_t amount) noexcept { left_ += amount; }
  std::int64_t current() const noexcept { return difference(allowance_, left_); }
  std::int64_t came() const noexcept { return came_; }
  std::int64_t allowance() const noexcept { return allowance_; }
  /// What is there stays.
  void set_allowance(std::int64_t value) noexcept {
    left_ = difference(value, current());
    allowance_ = value;
  }

 private:
  /// Wraps, as an allowance that was taken away is lower than any other.
  static std::int64_t difference(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  }

  std::int64_t left_ = 0;
  std::int64_t came_ = 0;
  std::int64_t allowance_ = 0;
};

/// What a shard has, and where its allowance is. (They may be two: of a sum of counts only the allowance is stored.)
template <class Count>
struct EscrowShareOf {
  std::int64_t current;
  Count& allowance;
};
using EscrowShare = EscrowShareOf<EscrowedCount>;

/// Sums over all shards.
struct EscrowSum {
  std::int64_t current = 0;
  std::int64_t came = 0;
};

/// Guarded by one lock for all that shards ask for.
class EscrowedPeak {
 public:
  /// `asking` has outgrown its allowance. `busy`: all shards that may have slack, itself included; `share_of` gives the
  /// EscrowShare of each. Afterwards its allowance is at least what it has, often more, so that it need not ask again
  /// at once. The others stand still.
  template <class Count, class Shards, class ShareOf>
  void grant(EscrowShareOf<Count> asking, const Shards& busy, ShareOf share_of) noexcept {
    if (grant_undealt(asking, busy.size())) return;
    call_in(busy, share_of);
    deal_out(busy, share_of);
  }

  // The same where the others count on: if the first is false then the second, heavy_barrier(), and the third.

  /// Gives what is not dealt out. False when that is not enough.
  template <class Count>
  bool grant_undealt(EscrowShareOf<Count> asking, std::size_t busy) noexcept {
    undealt_ -= asking.current - asking.allowance.allowance();
    asking.allowance.set_allowance(asking.current);
    if (undealt_ < 0) return false;
    const std::int64_t share = undealt_ / (static_cast<std::int64_t>(busy) + 1);  // one is kept for who comes next
    asking.allowance.set_allowance(asking.current + share);
    undealt_ -= share;
    return true;
  }
  /// From now on no shard may count up without asking.
  template <class Shards, class ShareOf>
  void call_in(const Shards& busy, ShareOf share_of) noexcept {
    for (auto&& shard : busy) {
      auto& allowance = share_of(shard).allowance;
      undealt_ += allowance.allowance();
      allowance.set_allowance(std::numeric_limits<std::int64_t>::min());
    }
  }
  /// To each what it has and some of what is left; the peak rises where that takes more than there is.
  template <class Shards, class ShareOf>
  void deal_out(const Shards& busy, ShareOf share_of) noexcept {
    for (auto&& shard : busy) {
      const auto share = share_of(shard);
      undealt_ -= share.current;
      share.allowance.set_allowance(share.current);
    }
    if (undealt_ <= 0) {
      peak_ -= undealt_;
      undealt_ = 0;
      return;
    }
    const auto shares = static_cast<std::int64_t>(busy.size()) + 1;
    const std::int64_t share = undealt_ / shares;
    for (auto&& shard : busy) {
      auto& allowance = share_of(shard).allowance;
      allowance.set_allowance(allowance.allowance() + share);
    }
    undealt_ -= share * (shares - 1);
  }

  /// The shard keeps no slack.
  void give_back(EscrowShare share) noexcept {
    undealt_ += share.allowance.allowance() - share.current;
    share.allowance.set_allowance(share.current);
  }

  /// Peak := what is current, for all shards.
  template <class Shards, class ShareOf>
  void reset_peak(std::int64_t current, const Shards& all, ShareOf share_of) noexcept {
    peak_ = current;
    undealt_ = 0;
    for (auto&& shard : all) {
      const auto share = share_of(shard);
      share.allowance.set_allowance(share.current);
    }
  }
  /// What came and went so far counts no more.
  void reset_accumulated(const EscrowSum& sum) noexcept { base_ = {sum.came - sum.current, sum.came}; }

  /// A shard that has outgrown its allowance may not have asked yet: what is seen of the sum was, all the same. For
  /// whoever has stopped all shards.
  void see(const EscrowSum& sum) noexcept {
    if (sum.current <= peak_) return;
    undealt_ += sum.current - peak_;
    peak_ = sum.current;
  }
  Stat stat(const EscrowSum& sum) const noexcept {
    return {.current = sum.current,
            .peak = std::max(peak_, sum.current),
            .allocated = sum.came - base_.came,
            .freed = (sum.came - sum.current) - base_.went};
  }
  std::int64_t peak() const noexcept { return peak_; }
  std::int64_t undealt() const noexcept { return undealt_; }

 private:
  struct Base {
    std::int64_t went = 0, came = 0;
  };
  std::int64_t peak_ = 0;
  std::int64_t undealt_ = 0;  ///< peak - all allowances
  Base base_;                 ///< at the last reset_accumulated
};

}  // namespace tenon
