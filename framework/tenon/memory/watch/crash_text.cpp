// Frames become lines; those of the handler and of the host are left out.
#include <tenon/core/demangled.h>
#include <tenon/core/process/child_process.h>
#include <tenon/memory/history/call_stack.h>
#include <tenon/memory/watch/crash_text.h>

#include <dlfcn.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace tenon {

namespace {

struct Frame {
  std::string function, module, file;
  std::uint32_t line = 0;
};

std::vector<Frame> frames_of(const CrashNote& note) {
  std::vector<Frame> frames;
  for (int i = 0; i < note.named_count.load(); ++i) {
    const NamedFrame& named = note.named[i];
    frames.push_back({demangled(named.function), named.module, named.file, named.line});
  }
  if (!frames.empty()) return frames;
  for (int i = 0; i < note.frame_count.load(); ++i) {
    void* const inside = static_cast<char*>(note.frames[i]) - 1;  // of the call, not after it
    const std::size_t first = frames.size();
    name_frame(
        inside,
        [](void* data, const char* function, const char* file, int line) {
          static_cast<std::vector<Frame>*>(data)->push_back({function == nullptr ? "" : demangled(function), "",
                                                             file == nullptr ? "" : file,
                                                             static_cast<std::uint32_t>(std::max(line, 0))});
        },
        &frames);
    Dl_info info{};
    const std::string path = ::dladdr(inside, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
    for (std::size_t k = first; k < frames.size(); ++k) frames[k].module = path.substr(path.find_last_of('/') + 1);
  }
  return frames;
}

/// The handler and what a C library does to raise a signal or to end a process.
bool is_of_the_handler(const Frame& frame) {
  const auto is_module = [&](const char* name) { return frame.module.starts_with(name); };
  const auto names = [&](const char* name) { return frame.function.find(name) != std::string::npos; };
  return names("told_of_exit") || names("ExitWatch") || names("::tell(int)") || names("on_crash") ||
         names("on_terminate") || names("__restore_rt") || is_module("libc.so") || is_module("libstdc++") ||
         is_module("libgcc") || is_module("libpthread");
}

/// From here on it is the host.
bool is_of_the_host(const Frame& frame) {
  for (const char* name :
       {"WatchedAllocator::", "AllocatorStack::", "_Function_handler<std::unique_ptr<tenon::Allocator"})
    if (frame.function.find(name) != std::string::npos) return true;
  return false;
}

}  // namespace

bool is_endless_recursion(const CrashNote& note, int signal) {
  return signal == SIGSEGV && note.frame_count >= CrashNote::kMostFrames - 1;
}

std::string crash_cause(const CrashNote& note, int signal) {
  std::string text = fmt::format("{} ({})", signal_name(signal), ::strsignal(signal));
  if (is_endless_recursion(note, signal)) text += fmt::format(", {}", kEndlessRecursion);
  if (note.fault_address != 0) text += fmt::format(" at address {:#x}", note.fault_address);
  if (signal == SIGKILL) text += "; the system may have run out of memory";
  if (note.words[0] != 0) text += fmt::format(": {}", note.words);
  return text;
}

std::vector<std::string> crash_stack(const CrashNote& note, std::size_t most) {
  const std::vector<Frame> frames = frames_of(note);
  auto frame = frames.begin();
  while (frame != frames.end() && is_of_the_handler(*frame)) ++frame;
  std::vector<std::string> lines;
  while (frame != frames.end() && lines.size() < most && !is_of_the_host(*frame)) {
    std::string line = fmt::format("{} ({})", frame->function.empty() ? "??" : frame->function, frame->module);
    if (frame->line != 0) line += fmt::format(" at {}:{}", frame->file, frame->line);
    const auto next = std::find_if(frame, frames.end(), [&](const Frame& other) {
      return other.function != frame->function || other.line != frame->line;
    });
    if (next - frame > 1) line += fmt::format("  ({} times)", next - frame);
    lines.push_back(std::move(line));
    frame = next;
  }
  return lines;
}

std::string crash_stack_text(const CrashNote& note) { return crash_stack_text(crash_stack(note)); }

std::string crash_stack_text(const std::vector<std::string>& stack) {
  std::string text;
  for (const std::string& line : stack) text += "\n    " + line;
  return text.empty() ? text : "\n  where it was:" + text;
}

}  // namespace tenon
