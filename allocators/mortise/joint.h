// Joint: how a block is put together out of free pieces of the home space, each mapped behind the one before it.
//
//   home     | live |##| page | page |  live  |     | page |## live |
//                    head and whole pages             whole page and tail
//   joined            |##| page | page | page |##|                          one range of addresses
//
// Only whole pages can be mapped. So the first piece may begin within a page and the last one end within one; what lies
// before the head and behind the tail on those pages are other blocks' ends.
#pragma once

#include "tile.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::mortise {

/// A part of a free tile.
struct Piece {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
};

struct Joint {
  std::vector<Piece> pieces;      ///< in the order of the block; empty where pages are missing
  std::size_t missing_pages = 0;  ///< whole free pages more, and it can be made
};

/// Puts `bytes`, a multiple of kGrain, together from these free tiles with as few whole pages as can be, and of the
/// ways to do so the one whose ends leave least beside them. Without `shares_ends` it begins with a page, and what it
/// leaves of its last one is free.
Joint plan_joint(const std::vector<Tile*>& free, std::size_t bytes, std::size_t page_bytes, bool shares_ends = true);

}  // namespace tenon::mortise
