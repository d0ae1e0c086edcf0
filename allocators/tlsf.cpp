// tlsf: two-level segregated fit (Masmano, Ripoll, Crespo, Real, ECRTS 2004). Free tiles hang in lists by size class,
// 32 classes for each power of two; two levels of bitmaps find the next class that holds something, so that a request
// and a free take the same time however many blocks there are. Of the request's own class only the first tile is looked
// at.
//
// Where the source has virtual memory, each stream's memory is one range of addresses that grows: its tiles can be
// joined however they came. Elsewhere it grows by segments.
#include "tiled/tiled_allocator.h"

#include <tenon/plugin/allocator_plugin.h>

#include <array>
#include <bit>

namespace {

using namespace tenon;
using namespace tenon::tiled;

/// Classes of tiles: up to 32 KiB one for each multiple of 512 bytes, above 32 for each power of two.
class TwoLevelIndex {
 public:
  [[gnu::always_inline]] Tile* find(std::size_t bytes) const {
    const std::size_t own = class_of(bytes);
    if (holds_something(own) && classes_[own].first()->bytes >= bytes) return classes_[own].first();
    const std::size_t next = next_class(own + 1);
    return next == kClasses ? nullptr : classes_[next].first();
  }
  Tile* find_hard(std::size_t bytes) const {
    if (Tile* const tile = find(bytes)) return tile;
    for (Tile* tile = classes_[class_of(bytes)].first(); tile; tile = tile->next)
      if (tile->bytes >= bytes) return tile;
    return nullptr;
  }

  [[gnu::always_inline]] void insert(Tile* tile) {
    const std::size_t index = class_of(tile->bytes);
    classes_[index].insert(tile);
    words_[index / 64] |= std::uint64_t{1} << index % 64;
    summary_ |= std::uint64_t{1} << index / 64;
  }
  [[gnu::always_inline]] void erase(Tile* tile) {
    const std::size_t index = class_of(tile->bytes);
    classes_[index].erase(tile);
    if (!classes_[index].empty()) return;
    words_[index / 64] &= ~(std::uint64_t{1} << index % 64);
    if (words_[index / 64] == 0) summary_ &= ~(std::uint64_t{1} << index / 64);
  }

  bool empty() const { return summary_ == 0; }
  Tile* any() const { return empty() ? nullptr : classes_[next_class(0)].first(); }
  bool holds(const Tile* wanted) const {
    const Tile* tile = classes_[class_of(wanted->bytes)].first();
    while (tile && tile != wanted) tile = tile->next;
    return tile != nullptr;
  }

 private:
  static constexpr std::size_t kUnitBits = 9, kFinenessBits = 5;
  static constexpr std::size_t kPerMagnitude = std::size_t{1} << kFinenessBits;
  static constexpr std::size_t kClasses = kPerMagnitude * (64 - kUnitBits - kFinenessBits + 1);
  static constexpr std::size_t kWords = (kClasses + 63) / 64;
  static_assert(kWords <= 64);

  static std::size_t class_of(std::size_t bytes) {
    const std::size_t units = bytes >> kUnitBits;
    if (units < kPerMagnitude) return units;
    const auto shift = static_cast<std::size_t>(std::bit_width(units)) - 1 - kFinenessBits;
    return shift * kPerMagnitude + (units >> shift);
  }
  bool holds_something(std::size_t index) const { return words_[index / 64] >> index % 64 & 1; }
  /// The first class from `index` on that holds something, kClasses when there is none.
  std::size_t next_class(std::size_t index) const {
    const std::size_t word = index / 64;
    if (word >= kWords) return kClasses;
    if (const std::uint64_t rest = words_[word] >> index % 64)
      return index + static_cast<std::size_t>(std::countr_zero(rest));
    const std::uint64_t later = summary_ & (~std::uint64_t{1} << word);
    if (later == 0) return kClasses;
    const auto next = static_cast<std::size_t>(std::countr_zero(later));
    return next * 64 + static_cast<std::size_t>(std::countr_zero(words_[next]));
  }

  std::uint64_t summary_ = 0;
  std::array<std::uint64_t, kWords> words_{};
  std::array<TileList, kClasses> classes_{};
};

struct Tlsf : DefaultRules {
  using Index = TwoLevelIndex;
  static constexpr const char* kName = "tlsf";
  static constexpr bool kIsThreadSafe = true;
  static constexpr bool kKeepsLastFreed = true;
  static constexpr std::size_t kUnit = 512, kGrowth = 2 * MiB;

  static OptionSchema options() {
    return {OptionSpec::text("growth", "auto",
                             "range: one growing range of addresses for each stream; segments; auto: range where the "
                             "device has virtual memory")
                .one_of({"auto", "range", "segments"}),
            OptionSpec::size("segment", 32 * MiB, "a segment is at least as long, where the device has as much")
                .range(std::size_t{512}, 1 * GiB)};
  }
  static AllocatorTraits traits() {
    return {.depends_on_capacity = [](const Options&) { return false; },
            .alignment = [](const Options&) { return kUnit; }};
  }

  explicit Tlsf(const AllocatorContext& context)
      : segment_(align_up(context.options.size("segment"), kUnit)), watcher_(context.source.address_range_watcher()) {
    const SourceTraits traits = context.source.traits();
    const std::string& growth = context.options.text("growth");
    if (growth == "range" && !traits.virtual_memory)
      throw ConfigError("tlsf: " + traits.device +
                        " has no virtual memory, which growth=range needs: use growth=segments");
    ranges_ = growth == "range" || (growth == "auto" && traits.virtual_memory);
    page_ = align_up(kGrowth, std::max<std::size_t>(traits.page_bytes, 1));
    // As expandable segments: so long that fragmentation of addresses alone fails no request that fits.
    std::size_t total = traits.capacity_bytes;
    if (ranges_ && total == 0) total = context.source.usage().total_bytes;
    if (total == 0) total = 8 * TiB;
    range_ = align_up(total + total / 8, page_);
  }

  std::size_t round(std::size_t bytes) const { return align_up(bytes, kUnit); }
  std::size_t cut_at(std::size_t whole, std::size_t bytes) const { return whole > bytes ? bytes : 0; }
  std::size_t segment_bytes(std::size_t bytes, std::size_t /*reserved*/) const { return std::max(bytes, segment_); }
  std::size_t after_refusal(std::size_t asked, std::size_t bytes) const {
    return asked > bytes ? std::max(bytes, align_up(asked / 2, kUnit)) : 0;
  }

  bool grows_ranges() const { return ranges_; }
  std::size_t range_bytes(std::size_t bytes) const { return bytes <= range_ ? range_ : 0; }
  std::size_t map_bytes(std::size_t bytes) const { return align_up(bytes, page_); }
  void range_reached(std::size_t bytes) const {
    if (watcher_) watcher_->relied_on(page_, bytes);
  }

 private:
  const std::size_t segment_;
  AddressRangeWatcher* const watcher_;
  bool ranges_ = false;
  std::size_t page_ = 0, range_ = 0;
};

using TlsfAllocator = TiledAllocator<Tlsf>;

}  // namespace

TENON_ALLOCATOR(tlsf, "1.0", TlsfAllocator, "two-level segregated fit: constant time, however many blocks there are")
