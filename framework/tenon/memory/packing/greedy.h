// Greedy packings: one pass over the buffers each. On the histories of training runs the best of them is within a few
// per cent of the bound; the searches start from it.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/packing/occupancy.h>
#include <tenon/memory/packing/timeline.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tenon::packing {

using Offsets = std::vector<std::uint64_t>;
/// Indices of buffers.
using Order = std::vector<std::uint32_t>;

/// A problem with its sections, and the room that passes over it use one after the other.
struct Workspace {
  explicit Workspace(std::span<const Buffer> problem)
      : buffers(problem), timeline(problem), occupancy(timeline.sections()) {}
  std::span<const Buffer> buffers;
  Timeline timeline;
  Occupancy occupancy;
  std::function<bool()> is_stopping;  ///< a pass under way ends as if the next buffer did not fit; may be empty
};

/// What first fit goes by: the first word decides, the largest first; births from the first one on, deaths from the
/// last one back.
enum class Criterion : std::uint8_t {
  kSize,
  kSizeBirth,
  kSizeLifetime,
  kArea,
  kLifetime,
  kLoad,
  kBirth,
  kDeath,
  kHint,
  kSizeClassBirth,  // sizes of one class are alike
  kSizeClassDeath,
  kLifetimeClassBirth,
  kLifetimeClassDeath
};
struct Ordering {
  Criterion criterion;
  double classes = 1;  ///< of those by class: so many for each power of two
};
/// Those that the histories of programs are packed best by come first.
inline constexpr Ordering kOrderings[] = {{Criterion::kSize},
                                          {Criterion::kSizeBirth},
                                          {Criterion::kLoad},
                                          {Criterion::kSizeClassDeath, 1},
                                          {Criterion::kSizeClassBirth, 1},
                                          {Criterion::kSizeLifetime},
                                          {Criterion::kArea},
                                          {Criterion::kLifetime},
                                          {Criterion::kDeath},
                                          {Criterion::kBirth},
                                          {Criterion::kSizeClassDeath, 2},
                                          {Criterion::kSizeClassBirth, 2},
                                          {Criterion::kLifetimeClassDeath, 2},
                                          {Criterion::kLifetimeClassBirth, 2},
                                          {Criterion::kLifetimeClassDeath, 4},
                                          {Criterion::kLifetimeClassBirth, 4},
                                          {Criterion::kSizeClassDeath, 4},
                                          {Criterion::kSizeClassBirth, 4},
                                          {Criterion::kLifetimeClassDeath, 1},
                                          {Criterion::kLifetimeClassBirth, 1},
                                          {Criterion::kSizeClassDeath, 0.5},
                                          {Criterion::kSizeClassBirth, 0.5},
                                          {Criterion::kHint}};
TENON_API std::string_view name_of(Criterion criterion);
TENON_API Order order_by(const Workspace& work, const Ordering& ordering);

/// What became of a pass in a given order.
struct FirstFit {
  std::uint64_t height = 0;
  std::optional<std::size_t> failed;  ///< the place in the order of the buffer that did not fit under the limit
};
/// Each buffer at the lowest offset that is free all its life, those with fixed offsets before all. Ends at the first
/// that would end above `limit`. Fixed ones that overlap fail like that.
TENON_API FirstFit first_fit(Workspace& work, const Order& order, std::uint64_t limit, Offsets& offsets);

/// By size: buffers of one size that do not live together share a layer, fewest layers, and layers are placed by first
/// fit as wholes (STAlloc: split and fuse). Empty where buffers have gaps or fixed offsets.
TENON_API Offsets split_and_fuse(Workspace& work);

/// Buffers that follow each other in `ordering` are stacked to a group as long as at least the part `usage` of its
/// rectangle, time by height, is used; a group is placed by first fit as one, the largest area first (STAlloc: by
/// group). Empty where buffers have gaps or fixed offsets, or is_stopping says so.
TENON_API Offsets fit_groups(Workspace& work, const Ordering& ordering, double usage);

/// As an allocator that coalesces would place them in time, each into the smallest hole (TFLite: by birth). Empty where
/// buffers have gaps or fixed offsets.
TENON_API Offsets birth_best_fit(const Workspace& work);
/// The same with time running backwards: what grows from one copy to the next then fits where the larger one was.
TENON_API Offsets death_best_fit(const Workspace& work);
/// The same, forwards or backwards, but beside what ends when the buffer does; `weight` says how much that counts
/// against a hole that is little longer. Empty where thousands live at once, too, which would take long.
TENON_API Offsets fit_beside_alike(const Workspace& work, bool is_backwards, double weight);

}  // namespace tenon::packing
