// Chrome traces for Perfetto and chrome://tracing: memory as counters, marks as instants.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/formats/image/snapshot_image.h>
#include <tenon/replay/trace/trace.h>

#include <string>

namespace tenon::replay {

/// Live bytes over events: one microsecond is one event.
TENON_API void write_chrome_counters(const Trace& trace, const std::string& path);

/// Live and reserved bytes of a running device over time, with its marks as instants.
TENON_API void write_chrome_counters(const SnapshotImage& image, const std::string& path);

}  // namespace tenon::replay
