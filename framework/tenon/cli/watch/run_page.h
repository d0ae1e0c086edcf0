// RunPage: what is known of a run while it runs, in memory of its own that outlives a crash: the process that tells of
// the crash maps it too. Plain data alone.
#pragma once

#include <tenon/memory/element_kind.h>
#include <tenon/memory/purpose.h>
#include <tenon/memory/stack/shown_figures.h>
#include <tenon/memory/watch/call_board.h>
#include <tenon/memory/watch/crash_note.h>
#include <tenon/train/experiment_result.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <string>

namespace tenon::cli {

/// A step that was finished.
struct KeptStep {
  double loss = 0, milliseconds = 0;
  MemorySample memory;
};

/// The figures of the whole run as plain numbers.
struct KeptFigures : DeviceCounts<std::int64_t> {
  std::int64_t parameters = 0, auto_batch_size = 0, planned_steps = 0, steps = 0, warmup_steps = 0,
               device_calls_after_warmup = 0, oom_recoveries = 0, epochs = 0;
  std::int64_t peak_requested_bytes = 0, peak_allocated_bytes = 0, peak_reserved_bytes = 0, allocations = 0, ooms = 0;
  std::int64_t peak_by_purpose[kPurposeCount] = {};
  std::int64_t peak_by_element[kPurposeCount][kElementKindCount] = {};

  /// Raises the peaks by purpose and element to those of `memory`.
  void raise_purposes(const MemoryStats& memory) {
    for (std::size_t i = 0; i < kPurposeCount; ++i) {
      peak_by_purpose[i] = std::max(peak_by_purpose[i], memory.requested_by_purpose[i].peak);
      for (std::size_t kind = 0; kind < kElementKindCount; ++kind)
        peak_by_element[i][kind] = std::max(peak_by_element[i][kind], memory.requested_by_element[i][kind].peak);
    }
  }
  /// Those peaks as the figures of `memory`.
  void put_purposes(MemoryStats& memory) const {
    for (std::size_t i = 0; i < kPurposeCount; ++i) {
      memory.requested_by_purpose[i].peak = peak_by_purpose[i];
      for (std::size_t kind = 0; kind < kElementKindCount; ++kind)
        memory.requested_by_element[i][kind].peak = peak_by_element[i][kind];
    }
  }
};

/// One of those that the run watches.
struct KeptAllocator {
  char title[320];    ///< "allocator 'caching'", "allocator 'tiny' behind the layer 'route'"
  char plugin[1024];  ///< the file that supplied it
  char spec[1280];    ///< that with its options, as `tenon plugins test` takes it
};

struct KeptFault {
  char title[320];  ///< of the allocator; empty: the run's own
  char what[400];
};

struct RunPage {
  static constexpr std::size_t kMostSteps = std::size_t{1} << 20, kMostEpochs = 4096;
  static constexpr std::size_t kMostFaults = 8, kMostAllocators = 8, kMostResultBytes = std::size_t{1} << 20;

  std::uint64_t bytes;  ///< sizeof(RunPage): another build's page is not read
  // Who runs, and where.
  char label[64], folder[2048];
  KeptAllocator allocators[kMostAllocators];  ///< by CallFacts::allocator; the first is the run's own
  bool writes_page;
  std::int64_t started_seconds;  ///< on the clock of std::time
  // Where it is.
  char doing[160];  ///< "step 3 of 100"
  CallBoard board;
  KeptFault faults[kMostFaults];
  // How it ends.
  std::atomic<std::int32_t> dying_thread;
  std::atomic<std::int32_t> overdue_slot;  ///< of the board, from 1; 0: no call hangs
  double overdue_seconds;
  bool has_exited;         ///< somebody ended the process with a code
  std::int32_t exit_code;  ///< that code; -1: nobody knows
  std::int32_t interrupt;  ///< the signal that asked for the end of a run that hangs; 0: none
  CrashNote crash;
  // What there is of the result.
  bool is_settled;  ///< result.json stands, and has all of it
  KeptFigures figures;
  EpochResult epochs[kMostEpochs];
  KeptStep steps[kMostSteps];
  char result[kMostResultBytes];  ///< a result.json without figures; empty where it did not fit
};

/// What a page holds of figures.
ExperimentResult result_of(const RunPage& page);

/// A page of zeros, and the file descriptor that stands for it; -1 where files may not be as long, and another process
/// cannot see it. Throws Error.
struct NewPage {
  RunPage* page = nullptr;
  int descriptor = -1;
};
NewPage make_page();
/// The page that the process before exec made; null when it is none, or another build's.
const RunPage* open_page(int descriptor);

/// Copies as much as there is room for, and ends it with a zero.
void keep_text(char* to, std::size_t room, std::string_view text) noexcept;

}  // namespace tenon::cli
