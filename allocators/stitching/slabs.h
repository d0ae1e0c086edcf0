// Slabs: rules for requests below the size of a primitive block, which GMLake leaves to PyTorch's caching allocator:
// best fit in segments of 2 MiB, split and joined, a set of them for each stream.
#pragma once

#include "../tiled/ordered_tiles.h"
#include "../tiled/tiled_allocator.h"

#include <tenon/core/units.h>

#include <cstddef>

namespace tenon::stitching {

struct Slabs : tiled::DefaultRules {
  using Index = tiled::OrderedTiles;
  static constexpr const char* kName = "stitching";
  static constexpr bool kKeepsLastFreed = true;
  /// Requests of at least so many bytes are not for slabs.
  static constexpr std::size_t kLimit = 1 * MiB;
  static constexpr std::size_t kSlabBytes = 2 * MiB, kUnit = 512;

  explicit Slabs(const AllocatorContext& /*context*/) {}

  std::size_t round(std::size_t bytes) const { return align_up(bytes, kUnit); }
  std::size_t cut_at(std::size_t whole, std::size_t bytes) const { return whole > bytes ? bytes : 0; }
  std::size_t segment_bytes(std::size_t /*bytes*/, std::size_t /*reserved*/) const { return kSlabBytes; }
};

using SlabAllocator = tiled::TiledAllocator<Slabs>;

}  // namespace tenon::stitching
