// How events and memory are added to a row, whatever rows are made by.
#pragma once

#include <tenon/profiler/averages.h>

namespace tenon::profiler {

inline constexpr double kNsPerUs = 1000;
/// Outside of every label or module.
inline constexpr char kOutsideKey[] = "(none)";

inline void add_self(EventAverage& row, const Event& event) {
  row.self_cpu_time_total += static_cast<double>(event.self_ns) / kNsPerUs;
  row.self_device_time_total += event.self_device_us;
  row.self_cpu_memory_usage += event.self_cpu_bytes;
  row.self_device_memory_usage += event.self_device_bytes;
  row.flops += event.flops;
}

/// Of a block that came or went outside of every event.
inline void add_self(EventAverage& row, const MemoryEvent& event) {
  (event.device.is_cpu() ? row.self_cpu_memory_usage : row.self_device_memory_usage) += event.bytes;
}

}  // namespace tenon::profiler
