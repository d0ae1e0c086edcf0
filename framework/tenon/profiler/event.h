// What a profiler recorded: events that contain each other, and memory that came and went.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/scope/context.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::profiler {

/// What an event is, by PyTorch's categories.
enum class EventKind : std::uint8_t { kOperator, kBackward, kLabel, kModule, kPhase, kCopy };

inline constexpr std::int64_t kNone = -1;

/// A stretch of time of one thread. Times are nanoseconds since the recording began.
struct Event {
  EventKind kind = EventKind::kOperator;
  std::string name;  ///< "aten::linear", "AddmmBackward0", a label, a module's path
  std::uint32_t thread = 0;
  scopes::ContextId context = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t parent = kNone;          ///< the innermost event around it, as an index
  std::int64_t visible_parent = kNone;  ///< the same without modules and phases, which have no rows of their own
  std::int64_t self_ns = 0;             ///< without the visible events inside
  double self_device_us = 0;            ///< of the kernels and copies that it queued itself
  double device_us = 0;                 ///< with those of the events inside
  std::int64_t self_cpu_bytes = 0;      ///< allocated minus freed, by itself
  std::int64_t cpu_bytes = 0;           ///< with the events inside
  std::int64_t self_device_bytes = 0;
  std::int64_t device_bytes = 0;
  double flops = 0;
  std::string shapes;  ///< "[[2, 3], []]"; empty where they were not recorded
  /// "file.cpp(12): main", innermost first: the program's own functions (own_frames in memory/history/call_site.h).
  std::vector<std::string> stack;
  std::string label;             ///< the innermost label around it, itself included
  std::uint64_t sequence = 0;    ///< of the node of autograd that it made, or that it runs
  const void* node = nullptr;    ///< that node, as a number
  std::int64_t forward = kNone;  ///< of a backward node: the operator that made it, as an index
};

/// A block that was allocated (bytes above 0) or freed.
struct MemoryEvent {
  std::int64_t time_ns = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t allocated_bytes = 0;  ///< live on that device afterwards, requested
  std::int64_t reserved_bytes = 0;   ///< what its allocator had of the device
  std::uint64_t stream = 0;
  Device device = kCPU;
  std::uint32_t thread = 0;
  std::int64_t event = kNone;  ///< inside of which visible event, as an index
};

/// A block that lived when the recording began, as requested.
struct EarlierBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::uint64_t stream = 0;
};
/// What lived on a device when the recording began, as requested.
struct MemoryBeginning {
  Device device = kCPU;
  std::int64_t bytes = 0;
  std::vector<EarlierBlock> blocks = {};  ///< by address, where memory is recorded and the allocator shows them
};

/// A moment: "step 3".
struct Mark {
  std::int64_t time_ns = 0;
  std::string name;
  std::uint32_t thread = 0;
};

/// A kernel or copy on a device, on the device's own clock.
struct DeviceEvent {
  std::string name;
  Device device;
  std::uint64_t stream = 0;
  double start_us = 0;  ///< since the recording began; on virtual time, since the device's began
  double duration_us = 0;
  bool is_virtual = false;
  std::int64_t event = kNone;  ///< what queued it, as an index
};

/// A call of an allocator to its device.
struct AllocatorCall {
  std::int64_t time_ns = 0;
  std::string name;  ///< "acquire", "release", "map" …
  Device device = kCPU;
  std::uint64_t bytes = 0;
  std::uint32_t thread = 0;
};

/// All of a recording: events in the order in which they began, thread by thread.
struct Recording {
  std::vector<Event> events;
  std::vector<MemoryEvent> memory;          ///< in the order of time
  std::vector<MemoryBeginning> beginnings;  ///< of each device that was there
  std::vector<DeviceEvent> device_events;
  std::vector<AllocatorCall> allocator_calls;
  std::vector<Mark> marks;
  std::int64_t duration_ns = 0;
  std::int64_t start_unix_ns = 0;
  bool has_memory = false, has_shapes = false, has_stacks = false, has_flops = false;
  std::string why_not_traced;  ///< where kernels of a device were timed by events around their calls instead
  std::string device_kind;     ///< "CUDA": of the devices other than the host in it; empty where there is none
};

/// Whether an event has rows: operators, backward nodes, labels and copies have.
constexpr bool is_visible(EventKind kind) { return kind != EventKind::kModule && kind != EventKind::kPhase; }

}  // namespace tenon::profiler
