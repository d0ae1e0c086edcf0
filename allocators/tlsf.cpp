// tlsf: two-level segregated fit (Masmano, Ripoll, Crespo, Real, ECRTS 2004). Free tiles hang in lists by size class,
// 32 classes for each power of two; two levels of bitmaps find the next class that holds something, so that a request
// and a free take the same time however many blocks there are. Of the request's own class only the first tile is looked
// at.
//
// Where the source has virtual memory, each stream's memory is one range of addresses that grows: its tiles can be
// joined however they came. Elsewhere it grows by segments.
#include "tiled/tiled_allocator.h"
#include "tiled/two_level_index.h"

#include <tenon/plugin/allocator_plugin.h>

namespace {

using namespace tenon;
using namespace tenon::tiled;

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
