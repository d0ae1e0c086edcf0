// Walking stacks with the unwinder, naming frames with libbacktrace where it was found at build time, else with dladdr.
#include <tenon/memory/stack_trace.h>

#include <cxxabi.h>
#include <dlfcn.h>
#include <unwind.h>

#if defined(TENON_HAVE_LIBBACKTRACE)
#include <backtrace.h>
#endif

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

/// Frames of the machinery that records: a reader of a history does not want to see them.
bool is_machinery(const std::string& name) {
  return name.starts_with("tenon::History::") || name.starts_with("tenon::capture_stack") ||
         name.starts_with("tenon::AllocatorStack::Impl::") ||
         name.starts_with("tenon::(anonymous namespace)::add_frame");
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
  frames.push_back(
      {.name = function != nullptr ? demangle(function) : "??", .file = file != nullptr ? file : "??", .line = line});
  return 0;
}

#endif

}  // namespace

std::vector<void*> capture_stack() {
  std::vector<void*> addresses;
  addresses.reserve(kMaxFrames);
  _Unwind_Backtrace(&add_frame, &addresses);
  return addresses;
}

std::vector<StackFrame> symbolize(const std::vector<void*>& addresses) {
  std::vector<StackFrame> frames;
  for (void* address : addresses) {
#if defined(TENON_HAVE_LIBBACKTRACE)
    const std::size_t before = frames.size();
    if (symbols() != nullptr) {
      backtrace_pcinfo(
          symbols(), reinterpret_cast<std::uintptr_t>(address), &add_symbol, [](void*, const char*, int) {}, &frames);
    }
    if (frames.size() == before) symbolize_by_dladdr(address, frames);
#else
    symbolize_by_dladdr(address, frames);
#endif
  }
  std::size_t first = 0;
  while (first < frames.size() && is_machinery(frames[first].name)) ++first;
  frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(first));
  return frames;
}

}  // namespace tenon
