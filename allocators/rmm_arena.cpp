// rmm_arena: the policy of RMM's arena_memory_resource, a baseline. One arena, by default half of what the device has
// free, of which each stream borrows superblocks of 1 MiB for its smaller blocks; larger blocks come from the arena
// itself. Everywhere the first fit by address; sizes are rounded up to a quarter of a power of two, as jemalloc does.
//
// Here the arena is taken at the first request, and given back by a trim. RMM synchronises a stream that frees a large
// block; here such a block goes to another stream once that is waited for. Superblocks that have become empty go back
// to the arena at once.
#include "tiled/listed_tiles.h"
#include "tiled/tiled_allocator.h"

#include <tenon/plugin/allocator_plugin.h>

#include <bit>

namespace {

using namespace tenon;
using namespace tenon::tiled;

struct RmmArena : DefaultRules {
  using Index = ListedTiles;
  static constexpr const char* kName = "rmm_arena";
  static constexpr bool kShares = true;
  static constexpr bool kWaitsFirst = true;
  static constexpr bool kLanes = true;
  static constexpr std::size_t kUnit = 512, kSuperblock = 1 * MiB, kLongestClass = 256 * GiB, kLongestArena = 1 * TiB;

  static OptionSchema options() {
    return {OptionSpec::size(
        "arena_size", 0, "all that there is, or half of it as often as the device has less; 0: half of what is free")};
  }
  static AllocatorTraits traits() {
    return {.depends_on_capacity = [](const Options& options) { return options.size("arena_size") == 0; },
            .alignment = [](const Options&) { return kUnit; },
            .is_baseline = true};
  }

  explicit RmmArena(const AllocatorContext& context)
      : source_(context.source), arena_(context.options.size("arena_size") / kUnit * kUnit) {
    if (context.options.size("arena_size") != 0 && arena_ < kSuperblock)
      throw ConfigError("rmm_arena: arena_size is below a superblock of 1 MiB");
  }

  std::size_t round(std::size_t bytes) const {
    if (bytes > kLongestClass) return 0;
    if (bytes > 48 * KiB && bytes <= 64 * KiB) return bytes <= 54 * KiB ? 54 * KiB : 64 * KiB;  // as RMM's table has it
    const std::size_t step = std::max(std::bit_floor(bytes - 1) / 4, kUnit);
    return align_up(bytes, step);
  }
  std::size_t cut_at(std::size_t whole, std::size_t bytes) const { return whole > bytes ? bytes : 0; }
  std::size_t lane(std::size_t bytes, const Request& /*request*/) const { return bytes > kSuperblock ? 0 : 1; }
  std::size_t page_bytes(std::size_t /*lane*/) const { return kSuperblock; }
  std::size_t segment_bytes(std::size_t bytes, std::size_t reserved) const {
    if (reserved != 0) return 0;
    const std::size_t arena =
        arena_ != 0 ? arena_ : std::min(source_.usage().free_bytes / 2 / kUnit * kUnit, kLongestArena);
    return bytes <= arena ? arena : 0;
  }
  std::size_t after_refusal(std::size_t asked, std::size_t bytes) const {
    return asked > bytes ? std::max(bytes, asked / 2 / kUnit * kUnit) : 0;
  }

 private:
  MemorySource& source_;
  const std::size_t arena_;
};

using RmmArenaAllocator = TiledAllocator<RmmArena>;

}  // namespace

TENON_ALLOCATOR(rmm_arena, "1.0", RmmArenaAllocator, "RMM's arena: superblocks for each stream, first fit; a baseline")
