// What keeps a request from fitting that is smaller than what is free: the blocks that lie between free ranges.
//
//   | free 6 MiB | block 1 KiB | free 9 MiB |      a request of 12 MiB fails; without the block it would fit
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/snapshot.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon {

/// A stretch of one segment, and the blocks in use that lie in it.
struct PinnedHole {
  std::uint64_t address = 0;
  std::size_t bytes = 0;        ///< of the stretch, what pins it included
  std::size_t free_bytes = 0;   ///< of that
  std::vector<BlockInfo> pins;  ///< by address
};

/// The stretch of at least `bytes` that has the fewest bytes in use; of equal ones the shortest. It begins and ends
/// with free blocks, or is free by half at least, and no free block lies beside it. Without one of that size, the
/// segment with the most free bytes of those with blocks in use and free by half at least, as a whole: these keep it
/// from going back to the device. Empty `pins`: nothing pins it, or what there is is in use.
TENON_API PinnedHole pinned_hole(const std::vector<Segment>& segments, std::size_t bytes);

}  // namespace tenon
