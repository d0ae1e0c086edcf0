// TraceBuilder: puts a Trace together event by event, hands out slots and keeps the sums.
#pragma once

#include <tenon/replay/trace/trace.h>

#include <optional>
#include <unordered_map>

namespace tenon::replay {

/// What readers keep for a block that was freed; no slot has this number.
inline constexpr std::uint32_t kFreedSlot = 0xffffffff;

/// Readers check what the file says; this asserts on what they may not do (freeing a slot twice).
class TENON_API TraceBuilder {
 public:
  explicit TraceBuilder(std::string path);

  /// Returns the slot of the new block. Throws TraceError past 65,535 streams or 2^32 blocks alive at once, without
  /// position.
  std::uint32_t allocate(std::uint64_t bytes, std::uint64_t stream);
  /// A deferred free keeps its slot until free_completed.
  void free(std::uint32_t slot, bool deferred = false);
  void free_completed(std::uint32_t slot);
  void use(std::uint32_t slot, std::uint64_t stream);
  /// A request that ran out of memory in the recording: an allocation that is freed at once.
  void fail(const FailedRequest& request);
  /// The next allocation is such a request: for readers whose file has the allocation and the free as well.
  void next_fails(const FailedRequest& request);
  void empty_cache();
  void mark(std::string_view name);
  /// The same as an event of another trace. `slot_of`: the slots here of that trace's slots; of a new block it is set.
  void repeat(const Trace& trace, const TraceEvent& event, std::vector<std::uint32_t>& slot_of);
  /// Everything allocated so far was alive before the recording.
  void recording_starts();
  /// A line `key: value` of the file's header; the last of one key counts. Past a thousand, those that mean nothing to
  /// Tenon are counted in a note.
  void header(std::string key, std::string value);

  /// When the events from here on were, from 0 to kMaxTimeUs: the nearest of these. Those before the first time, as
  /// blocks from before the recording, get that one.
  void at(std::int64_t time_us);
  /// What the allocations from here on are for; those before the first purpose are for kOther.
  void meant_for(Purpose purpose);

  std::uint64_t live_bytes() const { return live_bytes_; }
  std::uint64_t counted() const { return trace_.facts.events; }
  bool would_overflow(std::uint64_t bytes) const;
  Trace& trace() { return trace_; }
  Trace finish() &&;

 private:
  std::uint16_t stream_index(std::uint64_t stream);
  void count_event();

  Trace trace_;
  std::vector<std::uint64_t> bytes_of_slot_;
  std::vector<std::uint32_t> free_slots_;
  std::uint64_t live_bytes_ = 0;
  std::optional<std::int64_t> time_us_;
  std::optional<Purpose> purpose_;
  std::uint64_t dropped_lines_ = 0;
  std::uint64_t last_stream_ = 0;
  std::uint16_t last_stream_index_ = 0;
  std::unordered_map<std::uint64_t, std::uint16_t> stream_indices_;
  std::unordered_map<std::string, std::uint32_t> mark_indices_;
  bool first_stream_known_ = false;
};

}  // namespace tenon::replay
