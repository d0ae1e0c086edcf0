// What was live and reserved while the history of an image went on.
#pragma once

#include <tenon/replay/formats/image/snapshot_image.h>

#include <cstdint>

namespace tenon::replay {

struct ImageMemory {
  std::uint64_t live = 0;  ///< requested bytes
  std::uint64_t reserved = 0;
};

/// Before the first event: the image's end, walked back.
ImageMemory memory_before_history(const SnapshotImage& image);

/// Moves the sums by one event; true when they changed.
bool apply(const HistoryEvent& event, ImageMemory& now);

}  // namespace tenon::replay
