// Chrome traces for Perfetto and chrome://tracing: memory as counters, marks as instants.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/formats/image/snapshot_image.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::replay {

/// A moment, as an event of a Chrome trace.
std::string chrome_instant(std::string_view name, double time_us, int pid = 1, int tid = 1);

/// What series of figures are at a moment, as an event of a Chrome trace: shown as one picture of that name.
std::string chrome_counter(std::string_view name, double time_us, int pid,
                           const std::vector<std::pair<std::string_view, std::uint64_t>>& series);

/// Live bytes over events: one microsecond is one event.
TENON_API void write_chrome_counters(const Trace& trace, const std::string& path);

/// Live and reserved bytes of a running device over time, with its marks as instants.
TENON_API void write_chrome_counters(const SnapshotImage& image, const std::string& path);

}  // namespace tenon::replay
