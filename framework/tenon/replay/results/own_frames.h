// The program's own functions in the call stacks of a trace.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::replay {

/// The own frames of a stack (memory/history/call_site.h), innermost first, as indices into trace.stacks.frames.
TENON_API std::vector<std::uint32_t> own_frames(const Trace& trace, StackId stack);

/// Their names, as the call_site of the frames.
TENON_API std::string call_site(const Trace& trace, StackId stack, bool names_all = false);

}  // namespace tenon::replay
