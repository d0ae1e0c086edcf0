// buddy: sizes are powers of two; a tile is halved until it is as long as the request, and joined with the other half
// of what it was cut from when both are free (Knowlton, CACM 8 (10), 1965). A baseline: what rounding up costs.
#include "tiled/tiled_allocator.h"

#include <tenon/plugin/allocator_plugin.h>

#include <array>
#include <bit>

namespace {

using namespace tenon;
using namespace tenon::tiled;

/// Free tiles by the power that they are.
class Powers {
 public:
  Tile* find(std::size_t bytes) const {
    const std::uint64_t as_long = something_ & (~std::uint64_t{0} << order_of(bytes));
    return as_long == 0 ? nullptr : lists_[static_cast<std::size_t>(std::countr_zero(as_long))].first();
  }
  Tile* find_hard(std::size_t bytes) const { return find(bytes); }
  void insert(Tile* tile) {
    const std::size_t order = order_of(tile->bytes);
    lists_[order].insert(tile);
    something_ |= std::uint64_t{1} << order;
  }
  void erase(Tile* tile) {
    const std::size_t order = order_of(tile->bytes);
    lists_[order].erase(tile);
    if (lists_[order].empty()) something_ &= ~(std::uint64_t{1} << order);
  }
  bool holds(const Tile* wanted) const {
    const Tile* tile = lists_[order_of(wanted->bytes)].first();
    while (tile && tile != wanted) tile = tile->next;
    return tile != nullptr;
  }

 private:
  static std::size_t order_of(std::size_t bytes) { return static_cast<std::size_t>(std::bit_width(bytes)) - 1; }

  std::uint64_t something_ = 0;
  std::array<TileList, 64> lists_{};
};

struct Buddy : DefaultRules {
  using Index = Powers;
  static constexpr const char* kName = "buddy";
  static constexpr bool kJoinsAll = false;
  static constexpr std::size_t kUnit = 512;

  static OptionSchema options() {
    return {OptionSpec::size("chunk", 32 * MiB,
                             "a chunk is at least as long, where the device has as much; rounded up to a power of two")
                .range(kUnit, 1 * GiB)};
  }
  static AllocatorTraits traits() {
    return {.depends_on_capacity = [](const Options&) { return false; },
            .alignment = [](const Options&) { return kUnit; },
            .is_baseline = true};
  }

  explicit Buddy(const AllocatorContext& context) : chunk_(std::bit_ceil(context.options.size("chunk"))) {}

  std::size_t round(std::size_t bytes) const {
    constexpr std::size_t kLargest = std::size_t{1} << 63;
    return bytes > kLargest ? 0 : std::max(std::bit_ceil(bytes), kUnit);
  }
  std::size_t cut_at(std::size_t whole, std::size_t bytes) const { return whole > bytes ? whole / 2 : 0; }
  bool may_join(const Tile* left, const Tile* right, std::size_t offset) const {
    return left->bytes == right->bytes && offset % (2 * left->bytes) == 0;
  }
  std::size_t segment_bytes(std::size_t bytes, std::size_t /*reserved*/) const { return std::max(bytes, chunk_); }
  std::size_t after_refusal(std::size_t asked, std::size_t bytes) const { return asked > bytes ? asked / 2 : 0; }

 private:
  const std::size_t chunk_;
};

using BuddyAllocator = TiledAllocator<Buddy>;

}  // namespace

TENON_ALLOCATOR(buddy, "1.0", BuddyAllocator, "sizes are powers of two, tiles are halved and joined; a baseline")
