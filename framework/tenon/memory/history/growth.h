// Growth: whether what lives at the ends of steps becomes more, told from what only comes and goes.
//
//   levels       ·  ·   ·    what lives at the end of each step, whatever it is
//     lower bound  ‿‿‿╱‾     what it never comes below again: noise, queues and sawteeth leave it where it is
//   survivors   ▪▪ ▪  ▪ ▪    of what each step made, what lives until the end: buffers that are refilled leave few
//
// Both are held against one pattern: they rise at three steps or more, in each third of the time, not much less in the
// later half than in the earlier, and have not rested for much longer than between two rises.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <optional>
#include <span>

namespace tenon {

/// Of fewer values nothing is said.
inline constexpr std::size_t kLeastStepsOfGrowth = 4;

/// Bytes a step (Theil's and Sen's median slope) by which a series of bytes at the ends of steps grows; empty where it
/// does not. It grows where its lower bound rises by the pattern above and Mann's and Kendall's test finds a trend
/// (three standard deviations; of few values nearly every pair has to rise).
TENON_API std::optional<double> growth_per_step(std::span<const std::uint64_t> levels);

/// The same where blocks are known: `survivors` are the bytes that each step made and that live at the end of the last
/// one, `levels` all bytes of the same kind at the ends of the same steps. It grows where both rise by the pattern.
/// What is made anew each step has survivors of the last ones alone, and grows as above. So does a queue that takes in
/// more than it gives out, if it rises in each twelfth of 48 steps or more.
TENON_API std::optional<double> growth_per_step(std::span<const std::uint64_t> levels,
                                                std::span<const std::uint64_t> survivors);

/// How many of the last values rise, levels and survivors, by the pattern, above all that was before: what began late.
/// The most that do, at least kLeastStepsOfGrowth; 0 where none do. It may grow, or be filled and rest then.
TENON_API std::size_t rising_end(std::span<const std::uint64_t> levels, std::span<const std::uint64_t> survivors);

}  // namespace tenon
