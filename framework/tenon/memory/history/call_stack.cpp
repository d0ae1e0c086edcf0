// Walking stacks with the unwinder, naming frames with libbacktrace where it was found at build time, else with dladdr.
// Not by Boost.Stacktrace: a history walks a stack for each allocation, with a bound on frames, into numbers that it
// names once; that library names each frame of each stack anew, through the same two.
#include <tenon/memory/history/call_stack.h>

#include <cxxabi.h>
#include <dlfcn.h>
#include <unwind.h>

#if defined(TENON_HAVE_LIBBACKTRACE)
#include <backtrace.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

namespace tenon {

namespace {

constexpr std::size_t kMaxFrames = 48;

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* data) {
  auto& addresses = *static_cast<std::vector<void*>*>(data);
  const auto address = _Unwind_GetIP(context);
  if (address != 0) addresses.push_back(reinterpret_cast<void*>(address - 1));  // inside the call, not after it
  return addresses.size() >= kMaxFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

std::string demangle(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                             &std::free);
  return status == 0 && readable != nullptr ? std::string(readable.get()) : std::string(name);
}

void symbolize_by_dladdr(void* address, std::vector<StackFrame>& frames) {
  Dl_info info{};
  StackFrame frame{.name = "??", .file = "??"};
  if (dladdr(address, &info) != 0) {
    if (info.dli_sname != nullptr) frame.name = demangle(info.dli_sname);
    if (info.dli_fname != nullptr) frame.file = info.dli_fname;
  }
  frames.push_back(std::move(frame));
}

#if defined(TENON_HAVE_LIBBACKTRACE)

backtrace_state* symbols() {
  static backtrace_state* state = backtrace_create_state(
      nullptr, 1, [](void*, const char*, int) {}, nullptr);
  return state;
}

int add_symbol(void* data, std::uintptr_t, const char* file, int line, const char* function) {
  if (file == nullptr && function == nullptr) return 0;
  auto& frames = *static_cast<std::vector<StackFrame>*>(data);
  frames.push_back({.name = function != nullptr ? demangle(function) : "??",
                    .file = file != nullptr ? file : "??",
                    .line = static_cast<std::uint32_t>(std::max(0, line))});
  return 0;
}

/// The symbol table has qualified names where line tables have bare ones.
void add_full_name(void* data, std::uintptr_t, const char* symbol, std::uintptr_t, std::uintptr_t) {
  if (symbol != nullptr) *static_cast<std::string*>(data) = demangle(symbol);
}

void ignore_error(void*, const char*, int) {}

void symbolize_one(void* address, std::vector<StackFrame>& frames) {
  const auto pc = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t before = frames.size();
  std::string full_name;
  if (symbols() != nullptr) {
    backtrace_pcinfo(symbols(), pc, &add_symbol, &ignore_error, &frames);
    backtrace_syminfo(symbols(), pc, &add_full_name, &ignore_error, &full_name);
  }
  if (frames.size() == before) symbolize_by_dladdr(address, frames);
  // Functions inlined here come first; the symbol is that of the last, which they are in.
  if (!full_name.empty()) frames.back().name = full_name;
}

#else

void symbolize_one(void* address, std::vector<StackFrame>& frames) { symbolize_by_dladdr(address, frames); }

#endif

/// Frames of the machinery that records: a reader wants to begin with the call to the allocator.
std::size_t machinery_frames(const std::vector<StackFrame>& frames) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].name.starts_with("tenon::AllocatorStack::")) first = i;
  }
  return first;
}

}  // namespace

std::vector<void*> capture_call_stack() {
  std::vector<void*> addresses;
  addresses.reserve(kMaxFrames);
  _Unwind_Backtrace(&add_frame, &addresses);
  return addresses;
}

std::vector<StackFrame> symbolize(const std::vector<void*>& addresses) {
  std::vector<StackFrame> frames;
  for (void* address : addresses) symbolize_one(address, frames);
  frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(machinery_frames(frames)));
  return frames;
}

}  // namespace tenon
