// slab_by_lcm: small pages of each type in large pages of its own, whose length is the least common multiple of all
// small ones, after Jenga (SOSP 2025). A large page is tiled without a rest whatever its type, and goes back when all
// of it is free, for any type: so types do not fragment each other.
//
// A type is a size and a purpose: blocks of one purpose live about as long. Sizes are those of `steps` for each power
// of two, up to `largest_small`; longer requests come from the memory of the large pages, best fit.
//
//   steps 1   512, 1 KiB, 2 KiB …              large page: largest_small
//   steps 2   512, 1 KiB, 1.5 KiB, 2 KiB …     3 x largest_small
//   steps 4   … 2, 2.5, 3, 3.5 KiB …           105 x largest_small
#include "tiled/ordered_tiles.h"
#include "tiled/tiled_allocator.h"

#include <tenon/plugin/allocator_plugin.h>

#include <bit>

namespace {

using namespace tenon;
using namespace tenon::tiled;

struct SlabByLcm : DefaultRules {
  using Index = OrderedTiles;
  static constexpr const char* kName = "slab_by_lcm";
  static constexpr bool kLanes = true;
  static constexpr std::size_t kUnit = 512;

  static OptionSchema options() {
    return {OptionSpec::integer("steps", 2, "sizes of small pages for each power of two: 1, 2 or 4").range(1, 4),
            OptionSpec::size("largest_small", 128 * KiB, "the longest small page; rounded up to a power of two")
                .range(4 * KiB, 16 * MiB),
            OptionSpec::boolean("by_purpose", true, "blocks of different purposes have different pages"),
            OptionSpec::size("segment", 32 * MiB, "a segment is at least as long, where the device has as much")
                .range(kUnit, 1 * GiB)};
  }
  static AllocatorTraits traits() {
    return {.depends_on_capacity = [](const Options&) { return false; },
            .alignment = [](const Options&) { return kUnit; },
            .is_baseline = true};
  }

  explicit SlabByLcm(const AllocatorContext& context)
      : steps_(std::bit_floor(static_cast<std::size_t>(context.options.integer("steps")))),
        largest_small_(std::bit_ceil(context.options.size("largest_small"))),
        page_(largest_small_ * (steps_ == 1   ? 1
                                : steps_ == 2 ? 3
                                              : 3 * 5 * 7)),
        segment_(align_up(context.options.size("segment"), kUnit)),
        by_purpose_(context.options.boolean("by_purpose")) {}

  std::size_t round(std::size_t bytes) const {
    if (bytes > largest_small_) return align_up(bytes, kUnit);
    return align_up(bytes, step_of(bytes));
  }
  /// Small pages of a lane are all as long.
  std::size_t lane(std::size_t bytes, const Request& request) const {
    if (bytes > largest_small_) return 0;
    const std::size_t purpose = by_purpose_ ? static_cast<std::size_t>(request.purpose) : 0;
    return 1 + bytes / kUnit * kPurposeCount + purpose;
  }
  std::size_t page_bytes(std::size_t /*lane*/) const { return page_; }
  std::size_t cut_at(std::size_t whole, std::size_t bytes) const { return whole > bytes ? bytes : 0; }
  std::size_t segment_bytes(std::size_t bytes, std::size_t /*reserved*/) const { return std::max(bytes, segment_); }
  std::size_t after_refusal(std::size_t asked, std::size_t bytes) const {
    return asked > bytes ? std::max(bytes, align_up(asked / 2, kUnit)) : 0;
  }

 private:
  /// What sizes around `bytes` are multiples of.
  std::size_t step_of(std::size_t bytes) const { return std::max(std::bit_floor(bytes - 1) / steps_, kUnit); }

  const std::size_t steps_, largest_small_, page_, segment_;
  const bool by_purpose_;
};

using SlabByLcmAllocator = TiledAllocator<SlabByLcm>;

}  // namespace

TENON_ALLOCATOR(slab_by_lcm, "1.0", SlabByLcmAllocator,
                "Jenga's pages: large ones of the least common multiple of the small ones")
