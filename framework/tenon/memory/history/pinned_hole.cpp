// A window over the blocks of each segment.
#include <tenon/memory/history/pinned_hole.h>

#include <tuple>

namespace tenon {

namespace {

/// The better of two comes first: long enough, then few bytes in use, then short; of those too short the most free.
auto rank(const PinnedHole& hole, std::size_t wanted) {
  const bool is_short = hole.bytes < wanted;
  const std::size_t used = hole.bytes - hole.free_bytes;
  return is_short ? std::tuple(true, ~hole.free_bytes, used) : std::tuple(false, used, hole.bytes);
}

}  // namespace

PinnedHole pinned_hole(const std::vector<Segment>& segments, std::size_t bytes) {
  PinnedHole best;
  for (const Segment& segment : segments) {
    for (std::size_t first = 0; first < segment.blocks.size(); ++first) {
      if (segment.blocks[first].state != BlockState::kFree) continue;
      PinnedHole hole{.address = segment.blocks[first].address};
      for (std::size_t last = first; last < segment.blocks.size(); ++last) {
        const BlockInfo& block = segment.blocks[last];
        if (block.state == BlockState::kUnmapped) break;
        hole.bytes += block.bytes;
        if (block.is_in_use()) {
          hole.pins.push_back(block);
          continue;
        }
        hole.free_bytes += block.bytes;
        if (best.free_bytes == 0 || rank(hole, bytes) < rank(best, bytes)) best = hole;
        if (hole.bytes >= bytes) break;  // longer from here on is no better
      }
    }
  }
  return best;
}

}  // namespace tenon
