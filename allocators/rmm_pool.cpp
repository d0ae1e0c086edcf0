// rmm_pool: the policy of RMM's pool_memory_resource, a baseline. Best fit over free blocks, of equal ones the lowest,
// cut exactly, joined on free; free blocks belong to the stream that freed them. A request that its own stream's cannot
// serve takes another stream's block once that stream has got there, then joins other streams' blocks to its own, then
// grows the pool: by as much as it has, or by half of what is left to `maximum_size`, or half of that, and so on down
// to the request.
//
// Here the pool is first taken at the first request, and at the first one after all was given back.
//
// RMM puts the wait for another stream into the stream, here the host waits. RMM never gives memory back; here a trim
// does, and a request that would fail; what a stream has taken of another one's pool stays where it is, so a pool that
// has doubled from little can fail what a fresh one serves. Sizes are multiples of 512 bytes instead of 256, for every
// alignment that an allocator has to honour.
#include "tiled/ordered_tiles.h"
#include "tiled/tiled_allocator.h"

#include <tenon/plugin/allocator_plugin.h>

namespace {

using namespace tenon;
using namespace tenon::tiled;

struct RmmPool : DefaultRules {
  using Index = OrderedTiles;
  static constexpr const char* kName = "rmm_pool";
  static constexpr bool kShares = true;
  static constexpr bool kWaitsFirst = true;
  static constexpr bool kMarksFrees = true;
  static constexpr std::size_t kUnit = 512;

  static OptionSchema options() {
    return {OptionSpec::size("initial_pool_size", 0,
                             "taken at the first request; 0: half of what the device has free, 512: next to nothing"),
            OptionSpec::size("maximum_pool_size", 0, "what the pool takes at most; 0: no limit, it doubles")};
  }
  static AllocatorTraits traits() {
    return {.depends_on_capacity = [](const Options& options) { return options.size("initial_pool_size") == 0; },
            .alignment = [](const Options&) { return kUnit; },
            .is_baseline = true};
  }

  explicit RmmPool(const AllocatorContext& context)
      : source_(context.source),
        initial_(align_up(context.options.size("initial_pool_size"), kUnit)),
        maximum_(align_up(context.options.size("maximum_pool_size"), kUnit)) {
    if (maximum_ != 0 && initial_ > maximum_)
      throw ConfigError("rmm_pool: initial_pool_size is above maximum_pool_size");
  }

  std::size_t round(std::size_t bytes) const { return align_up(bytes, kUnit); }
  std::size_t cut_at(std::size_t whole, std::size_t bytes) const { return whole > bytes ? bytes : 0; }
  std::size_t segment_bytes(std::size_t bytes, std::size_t reserved) const {
    if (reserved == 0) return maximum_ != 0 && bytes > maximum_ ? 0 : std::max(bytes, initial_bytes());
    if (maximum_ == 0) return std::max(bytes, reserved);
    const std::size_t left = maximum_ - std::min(maximum_, reserved);
    return bytes <= left ? std::max(bytes, left / 2 / kUnit * kUnit) : 0;
  }
  std::size_t after_refusal(std::size_t asked, std::size_t bytes) const {
    return asked == bytes ? 0 : std::max(bytes, asked / 2 / kUnit * kUnit);
  }

 private:
  /// RMM's default in Python.
  std::size_t initial_bytes() const {
    if (initial_ != 0) return initial_;
    const SourceUsage usage = source_.usage();
    const std::size_t half = usage.total_bytes == 0 ? 0 : usage.free_bytes / 2 / kUnit * kUnit;
    return maximum_ != 0 ? std::min(half, maximum_) : half;
  }

  MemorySource& source_;
  const std::size_t initial_, maximum_;
};

using RmmPoolAllocator = TiledAllocator<RmmPool>;

}  // namespace

TENON_ALLOCATOR(rmm_pool, "1.0", RmmPoolAllocator, "RMM's pool: best fit, a free list for each stream; a baseline")
