// SnapshotImage: the memory of a device, running or replayed, with what a file of it says besides. The formats that
// hold one write it: snapshots for PyTorch's own viewer, counters of a Chrome trace, folded stacks.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/snapshot.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/trace/recorded_lines.h>
#include <tenon/replay/trace/trace.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {

struct SnapshotImage : Snapshot {
  std::vector<std::pair<std::int64_t, std::string>> marks;  ///< when, name: steps and phases
  std::string pytorch_conf;                                 ///< what makes PyTorch do the same
  std::string allocator;  ///< the policy's name; with its options below, under a key of Tenon's own
  std::string allocator_options;
  std::string allocator_plugin;  ///< the file that supplied it, where it was chosen by a path
  bool is_pytorchs = false;      ///< PyTorch has this allocator
  /// Before which events the program emptied the cache, where that is known: PyTorch's schema has no entry for it.
  std::optional<std::vector<std::uint64_t>> empty_caches;
  /// Reserved, in segments that are not in the list because the policy does not show them (Allocator::walk).
  std::uint64_t unlisted_bytes = 0;
  std::uint64_t max_split_bytes = 0;  ///< 0: no limit
  double garbage_collection_threshold = 0;
  std::array<std::uint32_t, 16> roundup_divisions{};
  /// Placed by a replay: what is in it is not a recording. What the recording itself was is in the lines below.
  bool is_replay = false;
  std::uint64_t seeded_blocks = 0;  ///< so many of the first allocations lived before that recording
  /// Of requests that ran out of memory in the recording, in the order of their events: what was reserved and what the
  /// device had left then, 0 and 0 where it does not say. The events themselves are about the replay's device.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> failures;
  RecordedLines recording;
};

/// The allocator's settings in PyTorch's words, where it has them, and its name and options in Tenon's.
TENON_API void describe_settings(const StackConfig& policy, SnapshotImage& image);

/// What becomes of requests that ran out of memory in the recording: asked for again, or kept as the failures they
/// were, which is what a conversion does.
enum class Failures : std::uint8_t { kAttempted, kKept };

/// Replays a trace under a policy and takes the picture at its end. Throws OutOfMemory with Failures::kKept when the
/// capacity does not serve what was served in the recording: no file that says otherwise may be written.
TENON_API SnapshotImage image_of_replay(const Trace& trace, const StackConfig& policy,
                                        std::optional<std::uint64_t> capacity_bytes,
                                        Failures failures = Failures::kAttempted);

/// Of a running device: its history and its segments now.
TENON_API SnapshotImage image_of_stack(const AllocatorStack& stack, const History& history);

}  // namespace tenon::replay
