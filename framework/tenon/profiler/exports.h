// Recordings as files of others.
#pragma once

#include <tenon/core/export.h>
#include <tenon/profiler/event.h>

#include <string>
#include <string_view>

namespace tenon::profiler {

/// Page-locked memory is the host's, of another allocator: a recording has it under the host without an index.
inline bool is_page_locked(const MemoryEvent& event) { return event.device.is_cpu() && !event.device.has_index(); }

/// A Chrome trace with the fields of torch.profiler's. Throws Error where it cannot be written.
TENON_API void write_chrome_trace(const Recording& recording, const std::string& path);

/// Folded stacks; see Profile::export_stacks().
TENON_API void write_folded_stacks(const Recording& recording, const std::string& path, std::string_view metric);

/// The memory of one device's allocator as a text history, page-locked memory left out; see
/// Profile::export_memory_history().
TENON_API void write_memory_history(const Recording& recording, const std::string& path, Device device);

}  // namespace tenon::profiler
