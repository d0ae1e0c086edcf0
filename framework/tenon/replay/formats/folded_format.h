// "frame;frame;frame BYTES" lines for flame graphs: the bytes that live at the peak, by allocating stack.
#pragma once

#include <tenon/replay/trace/trace.h>

#include <string>
#include <vector>

namespace tenon::replay {

/// One stack in that form, outermost first; "[no stack]" for an empty one.
std::string folded_stack(const std::vector<StackFrame>& frames);

}  // namespace tenon::replay
