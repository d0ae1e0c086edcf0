// Walking stacks with the unwinder, naming frames with libbacktrace where it was found at build time, else with dladdr.
// Not by Boost.Stacktrace: a history walks a stack for each allocation, with a bound on frames, into numbers that it
// names once; that library names each frame of each stack anew, through the same two.
#include <tenon/core/demangled.h>
#include <tenon/memory/history/call_stack.h>

#include <dlfcn.h>
#include <unwind.h>

// GCC has backtrace.h among its own headers, where clang-tidy does not look.
#if defined(TENON_HAVE_LIBBACKTRACE) && !__has_include(<backtrace.h>)
#undef TENON_HAVE_LIBBACKTRACE
#endif
#if defined(TENON_HAVE_LIBBACKTRACE)
#include <backtrace.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace tenon {

namespace {

// Note [Walking a stack again]: the unwinder needs a fifth of a microsecond a frame, and most of a stack is that of the
// walk before. So each frame is kept with the place of its return address. Where a walk meets a frame that the walk
// before had at the same place, and the places of all frames outside of it still hold what they held, the rest is as it
// was. (x86-64 has the return address next to the frame; elsewhere every frame is walked.)
struct Frame {
  std::uintptr_t address = 0;
  const std::uintptr_t* place = nullptr;  ///< where it stands; null where that is not known
};
struct Walk {
  std::array<Frame, kMostStackFrames> frames;
  std::size_t count = 0;
  bool is_whole = false;  ///< it ended where the stack does
};

/// A walk under way, and the one before.
struct Walking {
  std::unique_ptr<Walk> now = std::make_unique<Walk>(), before = std::make_unique<Walk>();
  std::size_t next = 0;  ///< in `before`: places within are inside of what has been met
};

__attribute__((no_sanitize("address"))) const std::uintptr_t* place_of(_Unwind_Context* context,
                                                                       std::uintptr_t address) {
#if defined(__x86_64__)
  const auto* place = reinterpret_cast<const std::uintptr_t*>(_Unwind_GetCFA(context)) - 1;
  return *place == address ? place : nullptr;
#else
  (void)context, (void)address;
  return nullptr;
#endif
}

/// Takes over the rest of the walk before, where it goes on as that did from its frame `at` on.
__attribute__((no_sanitize("address"))) bool goes_on_as_before(Walking& walking, std::size_t at) {
  Walk& now = *walking.now;
  const Walk& before = *walking.before;
  const std::size_t rest = before.count - at;
  if (!before.is_whole && now.count + rest < kMostStackFrames) return false;
  const std::size_t taken = std::min(rest, kMostStackFrames - now.count);
  for (std::size_t i = at; i < at + taken; ++i)
    if (before.frames[i].place == nullptr || *before.frames[i].place != before.frames[i].address) return false;
  std::copy_n(before.frames.begin() + static_cast<std::ptrdiff_t>(at), taken,
              now.frames.begin() + static_cast<std::ptrdiff_t>(now.count));
  now.count += taken;
  now.is_whole = before.is_whole && taken == rest;
  return true;
}

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* data) {
  auto& walking = *static_cast<Walking*>(data);
  Walk& now = *walking.now;
  const std::uintptr_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_NO_REASON;
  const Frame frame{address, place_of(context, address)};
  if (frame.place != nullptr) {
    const Walk& before = *walking.before;
    while (walking.next < before.count && before.frames[walking.next].place < frame.place) ++walking.next;
    if (walking.next < before.count && before.frames[walking.next].place == frame.place &&
        before.frames[walking.next].address == address && goes_on_as_before(walking, walking.next))
      return _URC_END_OF_STACK;
  }
  now.frames[now.count++] = frame;
  return now.count == kMostStackFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/// Made for a thread that walks.
Walking& walking_of_thread() {
  thread_local std::unique_ptr<Walking> walking;
  if (!walking) walking = std::make_unique<Walking>();
  return *walking;
}

/// Hands on the functions of one address; the outermost waits for its full name.
struct Naming {
  void (*add)(void* data, const char* function, const char* file, int line);
  void* data;
  bool has_one = false;
  const char* function = nullptr;
  const char* file = nullptr;
  int line = 0;

  void next(const char* its_function, const char* its_file, int its_line) {
    if (has_one) add(data, function, file, line);
    has_one = true;
    function = its_function;
    file = its_file;
    line = its_line;
  }
};

void name_by_dladdr(void* address, Naming& naming) {
  Dl_info info{};
  const bool is_known = dladdr(address, &info) != 0;
  naming.next(is_known ? info.dli_sname : nullptr, is_known ? info.dli_fname : nullptr, 0);
}

#if defined(TENON_HAVE_LIBBACKTRACE)

backtrace_state* symbols() {
  static backtrace_state* state = backtrace_create_state(
      nullptr, 1, [](void*, const char*, int) {}, nullptr);
  return state;
}

int add_symbol(void* data, std::uintptr_t, const char* file, int line, const char* function) {
  if (file != nullptr || function != nullptr) static_cast<Naming*>(data)->next(function, file, std::max(0, line));
  return 0;
}

/// The symbol table has qualified names where line tables have bare ones.
void add_full_name(void* data, std::uintptr_t, const char* symbol, std::uintptr_t, std::uintptr_t) {
  if (symbol != nullptr) *static_cast<const char**>(data) = symbol;
}

void ignore_error(void*, const char*, int) {}

void find_names(void* address, Naming& naming) {
  const auto pc = reinterpret_cast<std::uintptr_t>(address);
  const char* full_name = nullptr;
  if (symbols() != nullptr) {
    backtrace_pcinfo(symbols(), pc, &add_symbol, &ignore_error, &naming);
    backtrace_syminfo(symbols(), pc, &add_full_name, &ignore_error, &full_name);
  }
  if (!naming.has_one) name_by_dladdr(address, naming);
  // Functions inlined here come first; the symbol is that of the last, which they are in.
  if (full_name != nullptr) naming.function = full_name;
}

#else

void find_names(void* address, Naming& naming) { name_by_dladdr(address, naming); }

#endif

/// Frames of the machinery that records: a reader wants to begin with the call to the allocator, or with the operator.
std::size_t machinery_frames(const std::vector<StackFrame>& frames) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::string& name = frames[i].name;
    if (name.starts_with("tenon::AllocatorStack::")) first = i;
    if (name.starts_with("tenon::capture_call_stack") || name.starts_with("tenon::walk_call_stack") ||
        name.starts_with("tenon::profiler::Recorder::") || name.starts_with("tenon::scopes::") ||
        name.find("enter_operator") != std::string::npos)
      first = i + 1;
  }
  return first;
}

}  // namespace

std::size_t walk_call_stack(std::span<void*, kMostStackFrames> addresses) {
  Walking& walking = walking_of_thread();
  std::swap(walking.now, walking.before);
  Walk& now = *walking.now;
  now.count = 0;
  now.is_whole = false;
  walking.next = 0;
  if (_Unwind_Backtrace(&add_frame, &walking) == _URC_END_OF_STACK) now.is_whole = true;
  // Inside the call, not after it.
  for (std::size_t i = 0; i < now.count; ++i) addresses[i] = reinterpret_cast<void*>(now.frames[i].address - 1);
  return now.count;
}

std::vector<void*> capture_call_stack() {
  std::array<void*, kMostStackFrames> addresses;
  const std::size_t count = walk_call_stack(addresses);
  return {addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::vector<StackFrame> symbolize(const std::vector<void*>& addresses) {
  std::vector<StackFrame> frames;
  const auto add = [](void* data, const char* function, const char* file, int line) {
    static_cast<std::vector<StackFrame>*>(data)->push_back({.name = function != nullptr ? demangled(function) : "??",
                                                            .file = file != nullptr ? file : "??",
                                                            .line = static_cast<std::uint32_t>(line)});
  };
  for (void* address : addresses) name_frame(address, add, &frames);
  frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(machinery_frames(frames)));
  return frames;
}

void name_frame(void* address, void (*add)(void* data, const char* function, const char* file, int line), void* data) {
  Naming naming{.add = add, .data = data};
  find_names(address, naming);
  add(data, naming.function, naming.file, naming.line);
}

void prepare_to_name_frames() {
#if defined(TENON_HAVE_LIBBACKTRACE)
  symbols();
#endif
}

}  // namespace tenon
