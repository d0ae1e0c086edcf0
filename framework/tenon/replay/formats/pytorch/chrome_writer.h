// Chrome traces for Perfetto and chrome://tracing: memory as counters, marks as instants.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::replay {

/// Live bytes over events: one microsecond is one event.
TENON_API void write_chrome_counters(const Trace& trace, const std::string& path);

/// An instant event of a Chrome trace.
std::string chrome_instant(std::string_view name, std::uint64_t time_us);

}  // namespace tenon::replay
