// Call stacks: walking one is cheap and happens while the program runs, naming its functions is slow and happens later.
#pragma once

#include <tenon/memory/call_stacks.h>

#include <string>
#include <vector>

namespace tenon {

/// Return addresses of this thread, innermost first: those of walk_call_stack().
std::vector<void*> capture_call_stack();

/// Functions, files and lines as far as the debug information knows them; inlined functions have frames of their own.
std::vector<StackFrame> symbolize(const std::vector<void*>& addresses);

/// The same as symbolize for one address without a byte of the heap, so that a signal handler can do it: `add` gets
/// each function, innermost first, with what is known of it (else null and 0), names as the linker has them. Valid
/// during the call.
void name_frame(void* address, void (*add)(void* data, const char* function, const char* file, int line), void* data);
/// Before the first signal: what a handler may not do any more.
void prepare_to_name_frames();

}  // namespace tenon
