// What torch.profiler's Chrome trace says of memory: its "[memory]" and "[OutOfMemory]" instants and its steps.
#pragma once

#include <tenon/replay/formats/io/input_file.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::replay {

struct ProfilerMemoryEvent {
  std::int64_t time = 0;  ///< nanoseconds
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  ///< negative: a free
  std::int64_t total_allocated = -1;
  std::int64_t total_reserved = -1;
  std::int32_t device_type = 0;
  std::int32_t device_index = 0;
};

struct ProfilerStep {
  std::int64_t time = 0;
  std::string name;
};

/// In the order of the file.
struct ProfilerEvents {
  std::vector<ProfilerMemoryEvent> memory;
  std::vector<ProfilerMemoryEvent> failures;  ///< requests that ran out of memory
  std::vector<ProfilerStep> steps;
};

/// Reads the file through a SAX parser: everything else in it passes by. Throws TraceError.
ProfilerEvents read_profiler_events(InputFile& input);

}  // namespace tenon::replay
