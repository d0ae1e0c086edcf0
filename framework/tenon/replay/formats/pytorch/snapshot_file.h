// SnapshotFile: a PyTorch memory snapshot decoded, every version's schema alike.
#pragma once

#include <tenon/memory/snapshot.h>
#include <tenon/replay/formats/format.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {

/// One device of the file. The types are those of a running device (memory/snapshot.h), in a form that keeps a file of
/// a gigabyte cheap: times of events where they are wanted, and of a segment's blocks only those that are in use.
struct SnapshotDevice {
  std::int64_t index = 0;
  std::vector<MemoryEvent> events;     ///< kSnapshot and kOther hold no figures
  std::vector<std::int64_t> times_us;  ///< of each, where they are wanted and the file has any
  std::vector<Segment> segments;
  std::vector<std::pair<std::uint64_t, std::string>> marks;  ///< before which event, name: annotations by time
};

struct SnapshotFile {
  std::vector<SnapshotDevice> devices;
  RecordedAllocator settings;
  CallStacks stacks;
  bool has_history = false;
  /// Of files that Tenon wrote: the policy, and before which events the program emptied the cache.
  std::string allocator, allocator_options, allocator_plugin;
  bool is_pytorchs = false;  ///< that policy is PyTorch's, whatever its name is
  std::optional<std::vector<std::uint64_t>> empty_caches;
  std::uint64_t unlisted_bytes = 0;  ///< reserved at the end, in segments that the policy does not show
  /// Whether a replay placed the blocks, how many of the first allocations lived before the recording behind it, and
  /// what that was (recorded_lines.h).
  bool is_replay = false;
  std::uint64_t seeded_blocks = 0;
  std::map<std::string, std::string> recording;
  /// Of the recording's failed requests, in their order: bytes reserved, bytes that the device had left.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> failures;
};

/// The segments of a device with the gaps between their blocks as free ones, by address.
std::vector<Segment> tiled_segments(const SnapshotDevice& device);

/// Throws TraceError naming the place: "file: device_traces[0][12]: …".
SnapshotFile read_snapshot_file(InputFile& input, const ReadOptions& options);

}  // namespace tenon::replay
