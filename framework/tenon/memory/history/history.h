// History: a ring of what happened to a device's memory, in PyTorch's words, for snapshots and viewers.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/allocator.h>
#include <tenon/memory/purpose.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon {

/// The actions of torch.cuda.memory._snapshot()'s device_traces.
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
};

/// "alloc", "free_requested", … as in a snapshot.
TENON_API std::string_view name_of(HistoryAction action);

/// A stack that was walked: an id of History's; 0 is "none".
using StackId = std::uint32_t;

struct HistoryEvent {
  HistoryAction action = HistoryAction::kAlloc;
  Purpose purpose = Purpose::kOther;
  std::uint16_t label = 0;
  StackId stack = 0;
  std::uint64_t address = 0;  ///< 0 for kSnapshot; for kOom the device's free bytes (PyTorch: device_free)
  /// kAlloc, kFree…: as requested. kSegment…: taken from or given to the device. kOom: the request. kSnapshot: bytes
  /// live.
  std::size_t bytes = 0;
  StreamRef stream;
  std::int64_t time_us = 0;  ///< since the epoch
  std::uint64_t pool = 0;    ///< private pool, 0 = the default one
};

/// One function of a stack, innermost first. `line` is 0 and `file` "??" where nothing is known.
struct StackFrame {
  std::string name;
  std::string file;
  int line = 0;
};

/// Which events carry stacks: none, live blocks only, allocations, allocations and frees (PyTorch: context).
enum class StackContext : std::uint8_t { kNone, kState, kAlloc, kAll };

struct HistorySettings {
  /// The ring's length; the oldest entries go first. 0 keeps none: only live blocks' stacks ("state").
  std::size_t max_entries = 1 << 20;
  StackContext stacks = StackContext::kNone;
  std::uint32_t stack_every = 1;  ///< a stack for every n-th event only: walking one costs about a microsecond
};

/// Thread-safe. Events are in the order in which the allocator decided, as far as one thread can tell.
class TENON_EXPORT History {
 public:
  TENON_API History();
  TENON_API ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  /// Begins, or goes on under new settings. Entries recorded before stay unless `clear`.
  TENON_API void start(const HistorySettings& settings, bool clear = false);
  /// Stops and clears.
  TENON_API void stop();
  bool recording() const noexcept { return recording_.load(std::memory_order_acquire); }
  TENON_API HistorySettings settings() const;

  /// Adds an event; its time and, where the settings want one, its stack are filled in here.
  TENON_API void record(HistoryEvent event) noexcept;

  /// Oldest first. `recorded()` counts those that the ring has lost as well.
  TENON_API std::vector<HistoryEvent> events() const;
  TENON_API std::uint64_t recorded() const;
  /// The frames of a stack; empty for 0. Symbols are looked up here, not while recording.
  TENON_API std::vector<StackFrame> frames(StackId stack) const;
  /// The stack that allocated the live block at `address`, 0 when none was taken.
  TENON_API StackId live_stack(std::uint64_t address) const;

 private:
  StackId take_stack_locked(HistoryAction action);
  bool merge_locked(const HistoryEvent& event);

  std::atomic<bool> recording_{false};
  mutable std::mutex mutex_;
  HistorySettings settings_;
  std::vector<HistoryEvent> ring_;
  std::size_t next_ = 0;  ///< where the next entry goes once the ring is full
  std::uint64_t recorded_ = 0;
  std::array<std::uint64_t, 9> candidates_{};  ///< by action, events that could have had a stack: for stack_every
  std::unordered_map<std::uint64_t, StackId> live_stacks_;
  std::vector<std::vector<void*>> stacks_;
  std::unordered_map<std::uint64_t, std::vector<StackId>> stacks_by_hash_;
};

}  // namespace tenon
