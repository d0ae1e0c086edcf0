// Trace: one device's memory history as a flat array of events, whatever file it came from. "History" is the word for
// what was recorded; a Trace is the form in which it is replayed, and `trace` is what the files and verbs are called.
//
//   file ──reader──> Trace ──replay──> rows        (readers.h, replay.h)
//                      └────writer───> file        (writers.h)
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/memory/history/failed_request.h>
#include <tenon/memory/purpose.h>
#include <tenon/memory/snapshot.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::replay {

/// What a program asks of its allocator. What that did is in HistoryAction (memory/snapshot.h): a replay is given the
/// one and finds out the other.
enum class EventKind : std::uint8_t {
  kAllocate,       ///< `a`
  kFree,           ///< `f`
  kUse,            ///< `u`: also used on another stream
  kEmptyCache,     ///< `e`
  kMark,           ///< `m`: a step or a phase; not counted as an event
  kFreeCompleted,  ///< a deferred free has completed here in the recording; not counted as an event
};

/// Whether the contract counts this kind: `a`, `f`, `u` and `e` lines, from 0.
constexpr bool is_counted(EventKind kind) { return kind <= EventKind::kEmptyCache; }

/// Sixteen bytes. `slot` names the block: a small number that is used again once its block is gone, so that a replay
/// keeps as many records as blocks live at once.
struct TraceEvent {
  std::uint64_t bytes = 0;  ///< kAllocate, kFree: as requested; kMark: index into Trace::marks
  std::uint32_t slot = 0;
  std::uint16_t stream = 0;  ///< index into Trace::streams; kAllocate, kUse
  EventKind kind = EventKind::kMark;
  bool deferred = false;  ///< kFree: completes at a later kFreeCompleted of the same slot, or not at all
};
static_assert(sizeof(TraceEvent) == 16);

inline constexpr std::uint64_t kNoEvent = std::numeric_limits<std::uint64_t>::max();

/// What an allocator did to the device, or that it ran out: one of kSegmentAlloc to kOom.
struct DeviceCall {
  HistoryAction action = HistoryAction::kSegmentAlloc;
  std::uint64_t bytes = 0;
  std::uint64_t event = 0;  ///< counted events before it
  bool operator==(const DeviceCall&) const = default;
};

/// A request that ran out of memory while the file was recorded. In the trace it is an allocation that is freed at
/// once: a replay attempts it, and gives it back where it fits.
struct RecordedOom : FailedRequest {
  std::uint64_t event = 0;  ///< of its allocation
};

/// Memory that the recorded device gave as a whole (cudaMalloc), and where it lay.
struct RecordedSegment {
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;
};

/// The allocator that made the recording, as far as the file tells.
struct RecordedAllocator {
  std::string pytorch_conf;   ///< the settings string; empty when none or not stated
  bool has_settings = false;  ///< the file carries its allocator's settings
  bool expandable_segments = false;
  std::optional<std::uint64_t> max_split_size;  ///< empty: unlimited
  double garbage_collection_threshold = 0;
  std::vector<std::uint32_t> roundup_power2_divisions;  ///< 16 entries, or none
  std::uint64_t reserved_bytes = 0;                     ///< at the end, from the segment list
  std::uint64_t peak_reserved_bytes = 0;                ///< over the recorded part; 0 when unknown
  bool is_whole = false;                                ///< the history begins with an empty device
  std::uint64_t reserved_at_start_bytes = 0;            ///< in ordinary segments, when the recording began
  std::uint64_t pressed = 0;                            ///< how often segments were given back to go on
  bool has_device_calls = true;                         ///< false: the form of the file has no place for `actions`
  std::vector<DeviceCall> actions;                      ///< while the file was recorded
  std::vector<SegmentInfo> initial_segments;  ///< there when the recording began; by address; empty when is_whole
  /// Ordinary segments in the order in which they were taken, those that were there at the beginning first; empty where
  /// the file does not say.
  std::vector<RecordedSegment> acquired;
  /// Where the seeded blocks lay, in the order of the seeds: their addresses.
  std::vector<std::uint64_t> seed_addresses;
  /// At the end, by address, each tiled by its blocks; where the file has them and the reader was asked for stacks.
  std::vector<Segment> final_segments;
};

/// What a file may say of a time, in microseconds by its clock: some 36,000 years.
inline constexpr std::int64_t kMaxTimeUs = std::int64_t{1} << 60;

/// When each event was and what each block is for, where the file says so and the reader was asked to keep it: columns
/// beside the events, which no replay reads.
struct EventColumns {
  std::vector<std::int64_t> times_us;  ///< by the recording's clock; by counted event, or empty
  std::vector<Purpose> purposes;       ///< by allocation, in order of the kAllocate events, or empty
};

struct TraceFacts {
  std::uint64_t events = 0;  ///< counted ones
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t uses = 0;
  std::uint64_t empty_caches = 0;
  std::uint64_t marks = 0;
  std::uint64_t deferred_frees = 0;
  std::uint64_t peak_requested_bytes = 0;  ///< with requests that failed: they were wanted besides what lived
  std::uint64_t peak_event = 0;            ///< the counted event at which the peak is reached first
  std::uint64_t end_live_bytes = 0;
  std::uint64_t total_requested_bytes = 0;
  std::uint64_t max_request_bytes = 0;
  /// Blocks whose allocation lies before the recording: put at the start by the reader.
  std::uint64_t seeded_blocks = 0;
  std::uint64_t seeded_bytes = 0;
  /// Of these, bytes known only as a sum, not block by block.
  std::uint64_t unplaced_bytes = 0;
};

struct TENON_EXPORT Trace {
  std::string name;  ///< as in result rows: the file's name, with the device where it holds several
  std::string path;
  int device = 0;      ///< its number in the recording
  std::string format;  ///< the name of its Format: "text", "snapshot"
  std::vector<TraceEvent> events;
  std::vector<std::string> marks;
  std::vector<std::uint64_t> streams = {0};  ///< handles as recorded
  std::uint32_t slot_count = 0;
  TraceFacts facts;
  std::map<std::string, std::string> header;  ///< `# KEY: VALUE` lines, or what stands for them
  std::vector<std::string> notes;             ///< what a reader of results has to know about this file
  std::optional<RecordedAllocator> recorded;
  /// Written by a replay of Tenon under this allocator, whose device calls are not a recording's; empty for recordings.
  std::string replayed_under;
  /// Why a recording that this is a part of cannot be relied on; empty: nothing is known against it.
  std::string distrust;
  std::vector<RecordedOom> ooms;  ///< in order of their events
  /// Where allocations were made, when the file says so and the reader was asked to keep it.
  CallStacks stacks;
  std::vector<StackId> stack_of_allocation;  ///< in order of the kAllocate events; empty: not known
  EventColumns columns;
  std::uint64_t sizes_are_rounded =
      0;  ///< quantum to which the recorder had rounded the sizes already; 0 = not rounded

  /// The failed request that this counted event is the allocation of. `next` is the caller's place in `ooms`, 0 at
  /// first.
  const RecordedOom* failure_at(std::uint64_t event, std::size_t& next) const {
    return next < ooms.size() && ooms[next].event == event ? &ooms[next++] : nullptr;
  }
  /// Streams that allocate or use.
  std::size_t stream_count() const { return streams.size(); }
};

/// A file that cannot be read as a trace. The message begins with `file:line:` or `file: byte N:`.
class TENON_EXPORT TraceError : public ConfigError {
 public:
  using ConfigError::ConfigError;
  ~TraceError() override;
};

}  // namespace tenon::replay
