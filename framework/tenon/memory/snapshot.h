// A device's memory as plain data, in the words of torch.cuda.memory._snapshot(): segments, their blocks, the events of
// a history, and the call stacks that belong to them. One set of types for what an allocator shows (Allocator::walk),
// memory_snapshot(), snapshot files in and out, the images and layouts of replays, and reports.
//
//   Segment   [ block | block | block ]          memory from the device; its blocks tile it from left to right
//   events    alloc, free_requested, oom …       what happened, oldest first (PyTorch: device_traces)
//   stacks    who did it: by StackId (call_stacks.h)
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/call_stacks.h>
#include <tenon/memory/purpose.h>
#include <tenon/memory/stream_ref.h>

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Where something lies, as a number: in this process, on a device that has addresses only, or on the machine that a
/// file comes from. Made from a pointer or a number, read as a number.
class Address {
 public:
  constexpr Address() = default;
  Address(const void* pointer) : value_(reinterpret_cast<std::uintptr_t>(pointer)) {}
  template <std::integral T>
  constexpr Address(T value) : value_(static_cast<std::uint64_t>(value)) {}
  constexpr operator std::uint64_t() const { return value_; }
  friend bool operator==(Address address, const void* pointer) { return address.value_ == Address(pointer).value_; }

 private:
  std::uint64_t value_ = 0;
};

/// The actions of device_traces: what an allocator did. What a program asked of it is replay's EventKind.
enum class HistoryAction : std::uint8_t {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOom,
  kSnapshot,
  kOther,  ///< of a file: what other versions of PyTorch write besides
};
inline constexpr std::size_t kHistoryActions = 10;

/// "alloc", "free_requested", … as in a snapshot.
TENON_API std::string_view name_of(HistoryAction action);
/// kOther for a word that is none of them.
TENON_API HistoryAction action_of(std::string_view name);

/// Whether the device gave memory, respectively got some back.
constexpr bool takes_memory(HistoryAction action) {
  return action == HistoryAction::kSegmentAlloc || action == HistoryAction::kSegmentMap;
}
constexpr bool gives_memory(HistoryAction action) {
  return action == HistoryAction::kSegmentFree || action == HistoryAction::kSegmentUnmap;
}

/// What happened, without its time: 32 bytes, since a snapshot of a gigabyte holds ten million of them and is decoded
/// into these.
struct MemoryEvent {
  HistoryAction action = HistoryAction::kAlloc;
  Purpose purpose = Purpose::kOther;
  std::uint16_t label = 0;
  StackId stack = 0;
  std::uint64_t address = 0;  ///< 0 for kSnapshot; for kOom the device's free bytes (PyTorch: device_free)
  /// kAlloc, kFree…: as requested. kSegment…: taken from or given to the device. kOom: the request. kSnapshot: bytes
  /// live.
  std::uint64_t bytes = 0;
  StreamRef stream;
};
static_assert(sizeof(MemoryEvent) == 32);

/// An entry of a history: with its time.
struct HistoryEvent : MemoryEvent {
  std::int64_t time_us = 0;  ///< since the epoch; of a replay one for each event of the trace
  std::uint64_t pool = 0;    ///< private pool, 0 = the default one
};

/// How a part of a segment stands.
enum class BlockState : std::uint8_t {
  kActive,          ///< handed out (PyTorch: active_allocated)
  kAwaitingStream,  ///< freed, but a stream that used it has not got there yet (PyTorch: active_pending_free)
  kFree,            ///< cached (PyTorch: inactive)
  kUnmapped,        ///< address space without memory behind it (expandable segments)
};

struct BlockInfo {
  Address address;
  std::size_t bytes = 0;
  std::size_t requested_bytes = 0;  ///< 0 unless kActive or kAwaitingStream
  BlockState state = BlockState::kFree;
  StackId stack = 0;  ///< that allocated it; 0 where none is known. An allocator leaves it alone.

  bool is_in_use() const { return state == BlockState::kActive || state == BlockState::kAwaitingStream; }
};

struct SegmentInfo {
  Address address;
  std::size_t bytes = 0;  ///< backed by memory; for an expandable segment its mapped bytes
  StreamRef stream;
  bool is_large = true;  ///< PyTorch's segment_type
  bool is_expandable = false;
  std::uint64_t pool = 0;  ///< private pool, 0 = the default pool
};

/// Receives an allocator's layout: each segment, then its blocks in address order.
class TENON_EXPORT SegmentVisitor {
 public:
  virtual ~SegmentVisitor();
  virtual void segment(const SegmentInfo& info) = 0;
  virtual void block(const BlockInfo& info) = 0;
};

/// A segment with its blocks. In a snapshot an expandable one is a segment for each contiguous mapped range, and none
/// of its blocks is kUnmapped.
struct TENON_API Segment : SegmentInfo {
  std::vector<BlockInfo> blocks;  ///< left to right

  std::size_t allocated_bytes() const;  ///< of blocks handed out
  std::size_t active_bytes() const;     ///< with those that wait for a stream
  std::size_t requested_bytes() const;  ///< of active blocks, as asked for
};

/// Keeps what a walk shows, as it is shown.
class TENON_API SegmentCollector final : public SegmentVisitor {
 public:
  SegmentCollector();
  ~SegmentCollector() override;
  void segment(const SegmentInfo& info) override;
  void block(const BlockInfo& info) override;
  std::vector<Segment> take() { return std::move(segments_); }

 private:
  std::vector<Segment> segments_;
};

/// The same as a snapshot lists it: by address, what is not mapped left out, one segment for each mapped range.
TENON_API std::vector<Segment> mapped_segments(const std::vector<Segment>& shown);

/// The segments that `allocator` (an Allocator or an AllocatorStack) has now, as a snapshot lists them.
template <class T>
std::vector<Segment> mapped_segments_of(const T& allocator) {
  SegmentCollector collector;
  allocator.walk(collector);
  return mapped_segments(collector.take());
}

/// One device's memory at a moment, with the history that led there.
struct Snapshot {
  std::vector<Segment> segments;     ///< by address
  std::vector<HistoryEvent> events;  ///< oldest first; empty unless a history is recorded
  CallStacks stacks;                 ///< of events and blocks

  TENON_API std::size_t reserved_bytes() const;
  TENON_API std::size_t active_bytes() const;
};

}  // namespace tenon
