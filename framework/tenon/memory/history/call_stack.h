// Call stacks: walking one is cheap and happens while the program runs, naming its functions is slow and happens later.
#pragma once

#include <tenon/memory/history/history.h>

#include <vector>

namespace tenon {

/// Return addresses of this thread, innermost first, at most 48; frames of the memory layer itself are left out.
std::vector<void*> capture_call_stack();

/// Functions, files and lines as far as the debug information knows them; inlined functions have frames of their own.
std::vector<StackFrame> symbolize(const std::vector<void*>& addresses);

}  // namespace tenon
