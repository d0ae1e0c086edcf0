// Tile: one piece of the home space, from where it begins to where the next one does. The tiles of a range stand side
// by side without a gap between them, so that each knows its neighbours.
//
//   range   | active | free | lent | free |        unmapped           |      left/right link them in address order
//           |<---- pages, backed by physical memory --->|
//
// A joined block has a tile of its own, which stands in no range: its bytes are the lent tiles'.
#pragma once

#include "../tiled/record_slabs.h"

#include <tenon/memory/allocator.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon::mortise {

inline void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

struct StreamCache;
struct JoinedRange;

/// Small requests live in a range of their own, where they cannot keep large holes apart.
enum Region : std::uint8_t { kSmall, kLarge };
inline constexpr std::size_t kRegions = 2;

enum class TileState : std::uint8_t {
  kFree,      ///< in the index of its stream
  kQuick,     ///< cached as it is, not merged with its neighbours
  kActive,    ///< handed out
  kAwaiting,  ///< given back, but a stream still uses it
  kLent,      ///< a piece of a joined block
  kUnmapped,  ///< addresses without memory
};

/// One cache line.
struct alignas(64) Tile {
  static constexpr std::uint32_t kNoRange = 0xffffffff;

  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  Tile* left = nullptr;
  Tile* right = nullptr;
  union {
    Tile* next = nullptr;         ///< while free, quick or spare: in its list
    std::size_t requested_bytes;  ///< while handed out or awaiting
    JoinedRange* borrower;        ///< while lent
  };
  union {
    Tile** link = nullptr;  ///< while free: what points to it, the head of its list or another tile's next
    JoinedRange* joined;    ///< of a joined block's own tile
  };
  StreamCache* cache = nullptr;    ///< whose it is; of nobody while unmapped
  std::uint32_t range = kNoRange;  ///< its number; a joined block's own tile stands in none
  TileState state = TileState::kUnmapped;
  Region region = kLarge;
  bool has_uses = false;  ///< record_use named it

  std::uintptr_t end() const { return address + bytes; }
  bool is_joined() const { return range == kNoRange; }
};
static_assert(sizeof(Tile) == 64);

/// Records come from arrays and go back to a list: neighbours in time are neighbours in memory.
class TileStore {
 public:
  /// Throws std::bad_alloc, unless provide() has seen to it.
  Tile* take() {
    if (spare_ == nullptr) provide(1);
    Tile* tile = spare_;
    spare_ = tile->next;
    --spares_;
    *tile = Tile{};
    return tile;
  }
  void give(Tile* tile) noexcept {
    tile->next = spare_;
    spare_ = tile;
    ++spares_;
  }
  /// So many records can be taken after this without memory from the host.
  void provide(std::size_t count) {
    while (spares_ < count) [[unlikely]] {
        const std::span<Tile> tiles = slabs_.more();
        for (std::size_t i = tiles.size(); i-- > 0;) give(&tiles[i]);
      }
  }

 private:
  tiled::RecordSlabs<Tile> slabs_;
  Tile* spare_ = nullptr;
  std::size_t spares_ = 0;
};

}  // namespace tenon::mortise
