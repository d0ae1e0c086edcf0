// Growth: whether what lives at the ends of steps becomes more, told from what only comes and goes.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <optional>
#include <span>

namespace tenon {

/// Of fewer values nothing is said.
inline constexpr std::size_t kLeastStepsOfGrowth = 4;

/// Bytes a step by which a series of bytes at the ends of steps grows; empty where it does not. It grows where the
/// later half never comes back to what the earlier half reached, and new heights were reached at three steps or more,
/// the last of them in the later half: what is made once, and what a queue holds now and then, is none.
TENON_API std::optional<double> growth_per_step(std::span<const std::uint64_t> values);

}  // namespace tenon
