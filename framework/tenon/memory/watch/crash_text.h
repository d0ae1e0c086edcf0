// The words for a CrashNote.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/watch/crash_note.h>

#include <string>
#include <vector>

namespace tenon {

/// Whether so many calls were under way that the stack was full.
TENON_API bool is_endless_recursion(const CrashNote& note, int signal);
inline constexpr const char* kEndlessRecursion = "the stack is full: endless recursion?";

/// "SIGSEGV (Segmentation fault), the stack is full: endless recursion? at address 0x0: what an exception said".
TENON_API std::string crash_cause(const CrashNote& note, int signal);

/// The functions from where it happened outwards, up to where the host called the allocator, at most `most`:
/// "Mine::grow (mine.so) at mine.cpp:42". Where the dying process did not name them, this one does, which must have
/// been its parent.
TENON_API std::vector<std::string> crash_stack(const CrashNote& note, std::size_t most = 8);

/// The same as lines to put behind a sentence: "\n  where it was:\n    …"; empty where nothing is known.
TENON_API std::string crash_stack_text(const CrashNote& note);
/// The same of lines that are known already.
TENON_API std::string crash_stack_text(const std::vector<std::string>& stack);

}  // namespace tenon
