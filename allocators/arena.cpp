// arena: a rising offset. Each block begins where the one before it ends; what is freed comes back when everything
// behind it is free too, hence all of it at the end of a step. For memory that lives as long as a step, or a phase of
// one; beside blocks that stay, what lies before them waits for their end.
//
//   chunk   | A | freed | B | freed: joined with the end |  unused ──►       next block
#include "tiled/tiled_allocator.h"
#include "tiled/two_level_index.h"

#include <tenon/plugin/allocator_plugin.h>

namespace {

using namespace tenon;
using namespace tenon::tiled;

/// The free ends of chunks, the shortest that suffices first: other free tiles only wait to be joined with one.
class FreeEnds {
 public:
  Tile* find(std::size_t bytes) const { return ends_.find(bytes); }
  Tile* find_hard(std::size_t bytes) const { return ends_.find_hard(bytes); }
  void insert(Tile* tile) {
    if (is_end(tile)) ends_.insert(tile);
  }
  void erase(Tile* tile) {
    if (is_end(tile)) ends_.erase(tile);
  }
  bool holds(const Tile* tile) const { return !is_end(tile) || ends_.holds(tile); }

 private:
  static bool is_end(const Tile* tile) { return tile->right == nullptr; }

  TwoLevelIndex ends_;
};

struct Arena : DefaultRules {
  using Index = FreeEnds;
  static constexpr const char* kName = "arena";
  static constexpr bool kIsThreadSafe = true;
  static constexpr bool kKeepsLastFreed = true;
  static constexpr std::size_t kUnit = 512;

  static OptionSchema options() {
    return {OptionSpec::size("chunk", 64 * MiB, "a chunk is at least as long, where the device has as much")
                .range(std::size_t{512}, 1 * GiB)};
  }
  /// For what ends with a step: with weights among it a whole run is served badly, so it is tried where it is named.
  static AllocatorTraits traits() {
    return {.depends_on_capacity = [](const Options&) { return false; },
            .alignment = [](const Options&) { return kUnit; },
            .is_baseline = true};
  }

  explicit Arena(const AllocatorContext& context) : chunk_(align_up(context.options.size("chunk"), kUnit)) {}

  std::size_t round(std::size_t bytes) const { return align_up(bytes, kUnit); }
  std::size_t cut_at(std::size_t whole, std::size_t bytes) const { return whole > bytes ? bytes : 0; }
  std::size_t segment_bytes(std::size_t bytes, std::size_t /*reserved*/) const { return std::max(bytes, chunk_); }
  std::size_t after_refusal(std::size_t asked, std::size_t bytes) const {
    return asked > bytes ? std::max(bytes, align_up(asked / 2, kUnit)) : 0;
  }

 private:
  const std::size_t chunk_;
};

using ArenaAllocator = TiledAllocator<Arena>;

}  // namespace

TENON_ALLOCATOR(arena, "1.0", ArenaAllocator, "a rising offset; what is freed comes back when all behind it is free")
