// Arena: everything cached for one stream in one pool, under one lock. Memory never moves from one arena to another
// except through the device.
#pragma once

#include "block_record.h"
#include "counters.h"
#include "free_index.h"

#include <tenon/memory/allocator.h>
#include <tenon/memory/concurrent/biased_lock.h>

#include <cstdint>
#include <set>

namespace tenon::caching {

struct ByAddress {
  bool operator()(const BlockRecord* a, const BlockRecord* b) const { return a->address < b->address; }
};

struct alignas(64) Arena {
  Arena(StreamRef of_stream, std::uint64_t of_pool) : stream(of_stream), pool(of_pool) {}

  /// Caches a block. `born`: see Limits::age_mark.
  [[gnu::always_inline]] void put(bool large, BlockRecord* block, std::uint64_t born) {
    block->state = BlockState::kFree;
    block->born = born;
    free[large].insert(block);
  }

  BiasedLock mutex;
  StreamRef stream;       ///< both change only when a pool's arena, empty, is used again for another one
  std::uint64_t pool;     ///< 0 = the default pool
  Arena* next = nullptr;  ///< in the table of streams; set once
  // What follows is guarded by mutex.
  Counters counters;
  bool splits = true;                             ///< false: blocks are handed out whole (PyTorch: no_split)
  FreeIndex free[2];                              ///< small, large
  std::set<BlockRecord*, ByAddress> unmapped[2];  ///< holes of expandable segments
  RecordStore records;
  PoolStats* pool_reserved = nullptr;  ///< reserved bytes of its private pool; null in the default pool
};

}  // namespace tenon::caching
