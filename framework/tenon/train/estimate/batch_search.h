// The search for the largest number that fits, with few and dear trials.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace tenon::train {

struct BatchSample {
  std::int64_t batch_size = 0;
  std::int64_t bytes = 0;  ///< that its steps took at most
};

/// What a run with so many examples a step takes; nothing: more than there is, and `ceiling` says how much there is.
using BatchProbe = std::function<std::optional<std::int64_t>(std::int64_t batch_size, std::int64_t& ceiling)>;

/// The largest batch of at most `most` examples that fits; `least` does. The straight line through what fitted says
/// what to try. From one that does not fit it goes down by steps that double, and then halves what is left. What an
/// allocator takes need not grow with every example, so that a larger batch may fit where a smaller one does not:
/// at last every number is tried from a little beyond where the line reaches the ceiling down to the one that is known
/// to fit. `ceiling` is 0 where it is not known yet.
std::int64_t largest_fitting(const BatchSample& least, std::int64_t most, std::int64_t ceiling,
                             const BatchProbe& probe);

/// The largest of [least, too_many) that fits: downwards by steps that double, then the middle of what is left.
/// least - 1 where none does.
std::int64_t largest_below(std::int64_t least, std::int64_t too_many, const std::function<bool(std::int64_t)>& fits);

}  // namespace tenon::train
