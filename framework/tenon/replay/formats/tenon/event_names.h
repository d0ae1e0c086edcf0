// What the writers of the text and the binary form share: numbers of blocks, and the mark that ends the blocks from
// before the recording.
#pragma once

#include <tenon/memory/history/text_lines.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <vector>

namespace tenon::replay {

/// Number of the allocation that holds each slot: what text and binary files call a block.
class BlockNumbers {
 public:
  explicit BlockNumbers(const Trace& trace) : of_slot_(trace.slot_count) {}
  std::uint64_t allocate(std::uint32_t slot) { return of_slot_[slot] = next_++; }
  std::uint64_t operator[](std::uint32_t slot) const { return of_slot_[slot]; }

 private:
  std::vector<std::uint64_t> of_slot_;
  std::uint64_t next_ = 0;
};

/// Tells the mark that ends the seeds from others of its name.
class StartMark {
 public:
  explicit StartMark(const Trace& trace) : trace_(trace), is_open_(trace.facts.seeded_blocks != 0) {}
  bool is(const TraceEvent& event, std::uint64_t allocations) {
    const bool is_it = is_open_ && allocations == trace_.facts.seeded_blocks &&
                       trace_.marks[event.bytes] == text_marks::kRecordingStarts;
    if (is_it) is_open_ = false;
    return is_it;
  }

 private:
  const Trace& trace_;
  bool is_open_;
};

}  // namespace tenon::replay
