// A window over the blocks of each segment.
#include <tenon/memory/history/pinned_hole.h>

#include <tuple>

namespace tenon {

namespace {

/// What is mostly in use is no hole: nothing pins it, it is full.
bool is_free_by_half(const PinnedHole& hole) { return 2 * hole.free_bytes >= hole.bytes; }

/// The better of two comes first: few bytes in use, then short.
auto rank(const PinnedHole& hole) { return std::tuple(hole.bytes - hole.free_bytes, hole.bytes); }

/// All of a segment, up to what is not mapped.
PinnedHole whole(const Segment& segment) {
  PinnedHole hole{.address = segment.address};
  for (const BlockInfo& block : segment.blocks) {
    if (block.state == BlockState::kUnmapped) break;
    hole.bytes += block.bytes;
    if (block.is_in_use()) {
      hole.pins.push_back(block);
    } else {
      hole.free_bytes += block.bytes;
    }
  }
  return hole;
}

PinnedHole largest_segment(const std::vector<Segment>& segments) {
  PinnedHole best;
  for (const Segment& segment : segments) {
    PinnedHole hole = whole(segment);
    const auto rank_of = [](const PinnedHole& one) { return std::tuple(one.pins.empty(), ~one.free_bytes, one.bytes); };
    if (hole.free_bytes == 0 || !is_free_by_half(hole)) continue;
    if (best.free_bytes == 0 || rank_of(hole) < rank_of(best)) best = std::move(hole);
  }
  return best;
}

}  // namespace

PinnedHole pinned_hole(const std::vector<Segment>& segments, std::size_t bytes) {
  PinnedHole best;
  for (const Segment& segment : segments) {
    const auto is_free = [&](std::size_t i) {
      return i < segment.blocks.size() && segment.blocks[i].state == BlockState::kFree;
    };
    for (std::size_t first = 0; first < segment.blocks.size(); ++first) {
      if (first > 0 && is_free(first - 1)) continue;
      PinnedHole hole{.address = segment.blocks[first].address};
      for (std::size_t last = first; last < segment.blocks.size(); ++last) {
        const BlockInfo& block = segment.blocks[last];
        if (block.state == BlockState::kUnmapped) break;
        hole.bytes += block.bytes;
        if (block.is_in_use()) {
          hole.pins.push_back(block);
        } else {
          hole.free_bytes += block.bytes;
        }
        const bool is_hole = (is_free(first) && is_free(last)) || is_free_by_half(hole);
        if (hole.bytes < bytes || is_free(last + 1) || !is_hole) continue;
        if (best.free_bytes == 0 || rank(hole) < rank(best)) best = hole;
        break;  // longer from here on is no better
      }
    }
  }
  return best.free_bytes > 0 ? best : largest_segment(segments);
}

}  // namespace tenon
