// Writers: histories in the formats that others read. A name that ends in .gz is compressed.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/trace/trace.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::replay {

/// The text form. Reading it back gives the same events.
TENON_API void write_text(const Trace& trace, const std::string& path);

/// Tenon's binary form.
TENON_API void write_binary(const Trace& trace, const std::string& path);

/// Live bytes over events as Chrome trace counters, for Perfetto and chrome://tracing: one microsecond is one event.
TENON_API void write_chrome_counters(const Trace& trace, const std::string& path);

/// "frame;frame;frame BYTES" lines for flame graphs: the bytes that live at the peak, by allocating stack, outermost
/// first. Throws Error when the trace has no stacks.
TENON_API void write_folded(const Trace& trace, const std::string& path);

/// RMM's log: Thread,Time,Action,Pointer,Size,Stream. A free that waited for a stream is written where it was asked
/// for.
TENON_API void write_rmm(const Trace& trace, const std::string& path);

/// A static problem for minimalloc and its like: id,lower,upper,size, time in events. What is never freed ends with the
/// trace.
TENON_API void write_minimalloc(const Trace& trace, const std::string& path);

/// A mark's line of the text form, without its end. One that would mean something to the reader is told apart.
std::string text_mark(std::string_view name);

/// One stack in that form, outermost first; "[no stack]" for an empty one.
std::string folded_stack(const std::vector<StackFrame>& frames);

/// An instant event of a Chrome trace.
std::string chrome_instant(std::string_view name, std::uint64_t time_us);

}  // namespace tenon::replay
