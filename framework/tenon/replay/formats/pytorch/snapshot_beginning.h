// What was there when the history of a snapshot begins: its end, walked back.
#pragma once

#include <tenon/replay/formats/io/limits.h>
#include <tenon/replay/formats/pytorch/snapshot_file.h>

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

namespace tenon::replay {

/// A block that lived before the first event; kAwaitingStream where its free was requested by then.
struct SeedBlock {
  BlockInfo block;
  StreamRef stream;
};

struct SnapshotBeginning {
  std::vector<SeedBlock> blocks;      ///< by address
  std::vector<SegmentInfo> segments;  ///< ordinary ones, by address
  std::uint64_t reserved_bytes = 0;
  std::uint64_t reserved_at_end_bytes = 0;
  std::uint64_t peak_reserved_bytes = 0;  ///< on the way
  std::uint64_t capacity_bytes = 0;       ///< the largest that a failure tells; 0: none does
  bool has_free_requested = false;        ///< some writers record completions only, some only requests
  bool has_free_completed = false;
  std::unordered_set<std::size_t> never_completed;  ///< events whose free was pending at the end
};

/// `unlisted_bytes` were reserved at the end besides the segments of the file.
SnapshotBeginning beginning_of(const SnapshotDevice& device, std::uint64_t unlisted_bytes);

}  // namespace tenon::replay
