// bfc: best fit with coalescing, TensorFlow's allocator (tsl/framework/bfc_allocator.cc) and ONNX Runtime's arena
// (core/framework/bfc_arena.cc); a baseline. The smallest free chunk that suffices, of equal ones the lowest; it is cut
// where it is twice as long as the request, or where more than `max_dead_bytes_per_chunk` would lie idle. The bins of
// the originals lead to the same choice as one order by size and address.
//
//   arena_extend_strategy   the regions that it takes from the device
//   power_of_two            twice as long each time, up to max_power_of_two_extend_bytes (TensorFlow: no such limit)
//   same_as_requested       as long as the request (ONNX Runtime)
//   single_region           everything at once (TensorFlow without allow_growth)
//
// Sizes are multiples of 512 bytes instead of 256, for every alignment that an allocator has to honour. The originals
// know one stream, or wait on the device; here a chunk that another stream freed is waited for before memory runs out.
#include "tiled/ordered_tiles.h"
#include "tiled/tiled_allocator.h"

#include <tenon/plugin/allocator_plugin.h>

namespace {

using namespace tenon;
using namespace tenon::tiled;

enum class Extend { kPowerOfTwo, kSameAsRequested, kSingleRegion };

struct Bfc : DefaultRules {
  using Index = OrderedTiles;
  static constexpr const char* kName = "bfc";
  static constexpr bool kShares = true;
  static constexpr std::size_t kUnit = 512;

  static OptionSchema options() {
    return {OptionSpec::text("arena_extend_strategy", "power_of_two",
                             "power_of_two: each region is twice as long as the last; same_as_requested; "
                             "single_region: all of the device at once")
                .one_of({"power_of_two", "same_as_requested", "single_region"}),
            OptionSpec::size("initial_chunk_size_bytes", 2 * MiB, "of power_of_two: the first region")
                .range(kUnit, 1 * TiB),
            OptionSpec::size("max_power_of_two_extend_bytes", 1 * TiB,
                             "of power_of_two: regions do not double beyond it (ONNX Runtime: 1GiB)")
                .range(kUnit, 1 * TiB),
            OptionSpec::size("max_dead_bytes_per_chunk", 128 * MiB,
                             "a chunk less than twice as long as the request is cut where as much would lie idle")
                .range(kUnit, 1 * TiB),
            OptionSpec::size("max_mem", 0, "what all regions take together at most; 0: no limit")};
  }
  static AllocatorTraits traits() {
    return {.depends_on_capacity =
                [](const Options& options) {
                  return options.text("arena_extend_strategy") == "single_region" && options.size("max_mem") == 0;
                },
            .alignment = [](const Options&) { return kUnit; },
            .is_baseline = true};
  }

  explicit Bfc(const AllocatorContext& context)
      : source_(context.source),
        first_region_(align_up(context.options.size("initial_chunk_size_bytes"), kUnit)),
        longest_region_(align_up(context.options.size("max_power_of_two_extend_bytes"), kUnit)),
        dead_bytes_(context.options.size("max_dead_bytes_per_chunk")),
        most_(context.options.size("max_mem") / kUnit * kUnit) {
    const std::string& strategy = context.options.text("arena_extend_strategy");
    if (strategy == "same_as_requested") extend_ = Extend::kSameAsRequested;
    if (strategy == "single_region") extend_ = Extend::kSingleRegion;
    if (most_ == 0 && context.options.size("max_mem") != 0) throw ConfigError("bfc: max_mem is below 512 bytes");
  }

  std::size_t round(std::size_t bytes) const { return align_up(bytes, kUnit); }
  std::size_t cut_at(std::size_t whole, std::size_t bytes) const {
    const std::size_t rest = whole - bytes;
    return rest != 0 && (rest >= bytes || rest >= dead_bytes_) ? bytes : 0;
  }
  std::size_t segment_bytes(std::size_t bytes, std::size_t reserved) {
    if (reserved == 0) next_region_ = first_region_;
    std::size_t available = most_ != 0 ? most_ - std::min(most_, reserved) : kNoLimit;
    if (bytes > available) return 0;
    if (extend_ == Extend::kSameAsRequested) return bytes;
    if (extend_ == Extend::kPowerOfTwo) return std::min(region_for(bytes), available);
    if (most_ == 0) available = source_.usage().free_bytes / kUnit * kUnit;
    return std::max(bytes, std::min(available, kLongestRegion));
  }
  /// As in the originals a tenth less, until it is less than the request.
  std::size_t after_refusal(std::size_t asked, std::size_t bytes) const {
    if (asked == bytes) return 0;
    return std::max(bytes, asked / 10 * 9 / kUnit * kUnit);
  }
  void grew(std::size_t bytes) {
    const std::size_t region = region_for(bytes);
    next_region_ = std::max(next_region_, std::min(region == next_region_ ? 2 * region : region, longest_region_));
  }

 private:
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t kLongestRegion = 1 * TiB;  // of a device that names no end

  std::size_t region_for(std::size_t bytes) const {
    std::size_t region = next_region_;
    while (region < bytes) {
      if (region > kNoLimit / 2) return bytes;
      region *= 2;
    }
    return region;
  }

  MemorySource& source_;
  Extend extend_ = Extend::kPowerOfTwo;
  const std::size_t first_region_;
  std::size_t next_region_ = first_region_;
  const std::size_t longest_region_, dead_bytes_, most_;
};

using BfcAllocator = TiledAllocator<Bfc>;

}  // namespace

TENON_ALLOCATOR(bfc, "1.0", BfcAllocator, "best fit with coalescing, as TensorFlow and ONNX Runtime do it; a baseline")
