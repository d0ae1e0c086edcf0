// Tile: one piece of the home space. The tiles of a range stand side by side, as far as it has memory. Each is one
// stream's, and knows the tiles of its own stream to its left and right; they are its neighbours where they touch it.
//
//   range      | active | free | lent |  free  | active | free |      gap, without memory      |
//   stream     |   0    |  0   |  0   |   1    |   0    |  0   |
//   left/right    ------------------------------------            of stream 0: no other one's tile is ever looked at
//
// A joined block has a tile of its own, which stands in no range: its bytes are the lent tiles'.
#pragma once

#include "../tiled/record_slabs.h"

#include <tenon/memory/allocator.h>
#include <tenon/memory/concurrent/spin_lock.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
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
  StreamCache* cache = nullptr;    ///< whose it is
  std::uint32_t range = kNoRange;  ///< its number; a joined block's own tile stands in none
  TileState state = TileState::kFree;
  Region region = kLarge;
  bool has_uses = false;  ///< record_use named it

  std::uintptr_t end() const { return address + bytes; }
  bool is_joined() const { return range == kNoRange; }
};
static_assert(sizeof(Tile) == 64);

/// Records for all streams. What one has too many of goes to others: tiles that change streams take theirs along.
class TilePool {
 public:
  static constexpr std::size_t kBatch = 1024;

  /// Some records, linked by `next`. Throws std::bad_alloc.
  Tile* more(std::size_t& count) {
    const std::lock_guard lock(mutex_);
    if (returned_ != nullptr) {
      Tile* const first = returned_;
      count = first->bytes;
      returned_ = first->left;
      return first;
    }
    const std::span<Tile> tiles = slabs_.more();
    for (std::size_t i = 0; i + 1 < tiles.size(); ++i) tiles[i].next = &tiles[i + 1];
    tiles.back().next = nullptr;
    count = tiles.size();
    return tiles.data();
  }
  /// So many of them, linked likewise.
  void give(Tile* first, std::size_t count) noexcept {
    const std::lock_guard lock(mutex_);
    first->bytes = count;
    first->left = returned_;
    returned_ = first;
  }

 private:
  SpinLock mutex_;  ///< nobody takes another lock under it
  tiled::RecordSlabs<Tile> slabs_;
  Tile* returned_ = nullptr;  ///< batches, linked by `left`
};

/// The spare records of one stream. Records come from arrays and go back to a list: neighbours in time are neighbours
/// in memory.
class TileStore {
 public:
  explicit TileStore(TilePool& pool) : pool_(pool) {}

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
    while (spares_ < count) [[unlikely]] add();
  }
  /// What other streams may need sooner.
  void give_surplus() noexcept {
    while (spares_ >= 3 * TilePool::kBatch) {
      Tile* const first = spare_;
      Tile* last = first;
      for (std::size_t i = 1; i < TilePool::kBatch; ++i) last = last->next;
      spare_ = last->next;
      last->next = nullptr;
      spares_ -= TilePool::kBatch;
      pool_.give(first, TilePool::kBatch);
    }
  }
  /// All that is spare, for any stream: records move with their tiles, and one that lacks them would take new ones from
  /// the host.
  void give_all() noexcept {
    if (spare_ != nullptr) pool_.give(spare_, spares_);
    spare_ = nullptr;
    spares_ = 0;
  }

 private:
  [[gnu::noinline, gnu::cold]] void add() {
    std::size_t count = 0;
    Tile* const first = pool_.more(count);
    Tile* last = first;
    while (last->next != nullptr) last = last->next;
    last->next = spare_;
    spare_ = first;
    spares_ += count;
  }

  TilePool& pool_;
  Tile* spare_ = nullptr;
  std::size_t spares_ = 0;
};

}  // namespace tenon::mortise
