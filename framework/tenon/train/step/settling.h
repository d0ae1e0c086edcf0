// When every later step finds the memory as an earlier one found it.
#pragma once

#include <tenon/core/device.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace tenon::train {

/// Watches what the allocators of a run keep from step to step.
///
/// Note [Settling]: steps ask for the same, but an allocator with a cache serves the first few of them in other ways:
/// what one leaves split need not suit the next, so that more is reserved for some steps yet, or a request fails whose
/// like was served before. It has settled once, for kCalmSteps, segments and blocks lie behind a step as they lay
/// behind an earlier one, and nothing was asked of the device, unless the allocator caches nothing. At the very end of
/// a device's memory an allocator that moves pages about may never come to that: some such runs end out of memory
/// hundreds of steps later. Where an allocator shows nothing, or steps are dear, it has settled once what is reserved
/// at most has stayed the same for kQuietSteps.
class Settling {
 public:
  static constexpr int kMostSteps = 64;  ///< a run is watched for no longer
  static constexpr int kCalmSteps = 4;
  static constexpr int kQuietSteps = 8;

  /// `are_steps_dear`: on a device that computes.
  Settling(std::vector<Device> devices, bool are_steps_dear)
      : devices_(std::move(devices)), are_steps_dear_(are_steps_dear) {}

  void epoch_begins();
  /// To be called after each step: whether those that are left of the epoch bring nothing new, or are too many.
  bool has_settled_after_step();
  /// Whether further epochs bring nothing new, their tests included: one that was not the first has settled at once.
  bool knows_epochs() const { return epochs_ > 1 && steps_of_epoch_ == 1 && has_settled_; }
  /// Whether it has been watched for as long as it may.
  bool has_given_up() const { return steps_ >= kMostSteps && !knows_epochs(); }

 private:
  struct Layout {
    std::uint64_t hash = 0;  ///< of segments and blocks, wherever the segments begin
    bool is_known = false;   ///< false: the allocators show nothing
    bool has_cache = false;  ///< blocks that are free
  };
  Layout layout() const;
  std::int64_t device_calls() const;
  std::int64_t most_reserved() const;

  const std::vector<Device> devices_;
  const bool are_steps_dear_;
  std::set<std::uint64_t> layouts_;
  std::int64_t reserved_bytes_ = 0, device_calls_ = 0;
  int epochs_ = 0, steps_ = 0, steps_of_epoch_ = 0, calm_steps_ = 0, quiet_steps_ = 0;
  bool has_settled_ = false;
};

}  // namespace tenon::train
