// Arena: everything cached for one stream in one pool, under one lock. Memory never moves from one arena to another
// except through the device.
#pragma once

#include "arena_lock.h"
#include "counters.h"
#include "free_index.h"
#include "piece.h"

#include <tenon/memory/allocator.h>

#include <cstdint>
#include <set>
#include <vector>

namespace tenon::caching {

struct ByAddress {
  bool operator()(const Piece* a, const Piece* b) const { return a->address < b->address; }
};

struct alignas(64) Arena {
  Arena(StreamRef of_stream, std::uint64_t of_pool) : stream(of_stream), pool(of_pool) {}

  ArenaLock mutex;
  StreamRef stream;       ///< both change only when a pool's arena, empty, is used again for another one
  std::uint64_t pool;     ///< 0 = the default pool
  Arena* next = nullptr;  ///< in the table of streams; set once
  // What follows is guarded by mutex.
  Counters counters;
  bool splits = true;                       ///< false: pieces are handed out whole (PyTorch: a pool with no_split)
  FreeIndex free[2];                        ///< small, large
  std::set<Piece*, ByAddress> unmapped[2];  ///< holes of expandable segments
  PieceStore pieces;
};

/// One stretch of device memory (cudaMalloc), or of address space (an expandable segment).
struct Segment {
  Arena* arena = nullptr;
  std::uintptr_t address = 0;
  std::size_t bytes = 0;             ///< of address space
  std::size_t mapped_bytes = 0;      ///< backed by memory: all of it unless expandable
  std::size_t page_bytes = 0;        ///< of an expandable segment
  std::vector<std::uint64_t> pages;  ///< its physical pieces, 0 where there is none
  Piece* first = nullptr;            ///< null: this slot is unused
  bool large = false;
  bool expandable = false;
};

}  // namespace tenon::caching
