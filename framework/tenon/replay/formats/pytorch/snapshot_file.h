// SnapshotFile: a PyTorch memory snapshot decoded into flat records, every version's schema alike.
#pragma once

#include <tenon/replay/formats/input_file.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {

enum class SnapshotAction : std::uint8_t {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOom,
  kOther,
};

struct SnapshotEntry {
  std::uint64_t address = 0;  ///< bytes free on the device for kOom
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  std::uint32_t stack = 0;  ///< into SnapshotFile::stacks
  SnapshotAction action = SnapshotAction::kOther;
};

struct SnapshotBlock {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requested_bytes = 0;
  std::uint64_t stream = 0;
  std::uint32_t stack = 0;
  bool is_pending_free = false;
};

struct SnapshotSegment {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  bool is_large = true;
  bool is_expandable = false;
  bool is_private = false;  ///< of a pool of its own: a CUDA graph's, a MemPool's
};

struct SnapshotDevice {
  std::int64_t index = 0;
  std::vector<SnapshotEntry> entries;
  std::vector<SnapshotBlock> live;  ///< active blocks of the segment list
  std::vector<SnapshotSegment> segments;
  std::vector<std::pair<std::uint64_t, std::string>> marks;  ///< before which entry, name: annotations by time
};

struct SnapshotFile {
  std::vector<SnapshotDevice> devices;
  RecordedAllocator settings;
  std::vector<Frame> frames;
  std::vector<std::vector<std::uint32_t>> stacks = {{}};
  bool has_history = false;
  /// Of files that Tenon wrote: the policy, and before which entries the program emptied the cache.
  std::string allocator, allocator_options;
  std::optional<std::vector<std::uint64_t>> empty_caches;
  /// Whether a replay placed the blocks, how many of the first allocations lived before the recording behind it, and
  /// what that was (recorded_lines.h).
  bool is_replay = false;
  std::uint64_t seeded_blocks = 0;
  std::map<std::string, std::string> recording;
  /// Of the recording's failed requests, in their order: bytes reserved, bytes that the device had left.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> failures;
};

/// Throws TraceError naming the place: "file: device_traces[0][12]: …".
SnapshotFile read_snapshot_file(InputFile& input, bool with_stacks);

}  // namespace tenon::replay
