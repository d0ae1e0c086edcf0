// Naming frames with libbacktrace where it was found at build time, else with dladdr.
// Not by Boost.Stacktrace: a history walks a stack for each allocation, with a bound on frames, into numbers that it
// names once; that library names each frame of each stack anew, through the same two.
#include <tenon/core/demangled.h>
#include <tenon/memory/history/call_stack.h>
#include <tenon/memory/history/stack_walk.h>

#include <dlfcn.h>

// GCC has backtrace.h among its own headers, where clang-tidy does not look.
#if defined(TENON_HAVE_LIBBACKTRACE) && __has_include(<backtrace.h>)
#define TENON_NAMES_BY_LIBBACKTRACE
#endif
#if defined(TENON_NAMES_BY_LIBBACKTRACE)
#include <backtrace.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <string>

namespace tenon {

namespace {

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

#if defined(TENON_NAMES_BY_LIBBACKTRACE)

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
        name.starts_with("tenon::StackTable::") || name.starts_with("tenon::profiler::") ||
        name.starts_with("tenon::scopes::") || name.find("enter_operator") != std::string::npos)
      first = i + 1;
  }
  return first;
}

}  // namespace

std::vector<void*> capture_call_stack() {
  std::array<void*, kMostStackFrames> addresses;
  const std::size_t count = walk_call_stack(addresses);
  return std::vector<void*>(addresses.data(), addresses.data() + count);
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
#if defined(TENON_NAMES_BY_LIBBACKTRACE)
  symbols();
#endif
}

}  // namespace tenon
