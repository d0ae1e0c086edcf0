// Plain functions that kernels of every level call.
#include <tenon/core/error.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "kernels/kernels.h"
#include "thread_pool.h"

namespace tenon::cpu {
namespace {

LevelFunctions current_functions{};

struct Ranges {
  std::int64_t total;
  std::int64_t chunk;
  void (*body)(void*, std::int64_t, std::int64_t);
  void* state;
};

void run_range(void* state, int part) {
  const Ranges& ranges = *static_cast<const Ranges*>(state);
  const std::int64_t begin = part * ranges.chunk;
  const std::int64_t end = std::min(begin + ranges.chunk, ranges.total);
  if (begin < end) ranges.body(ranges.state, begin, end);
}

}  // namespace

void fail(const char* format, ...) {
  char message[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  throw Error(message);
}

void parallel_ranges(std::int64_t total, std::int64_t grain, std::int64_t multiple,
                     void (*body)(void*, std::int64_t, std::int64_t), void* state) {
  if (total <= 0) return;
  const std::int64_t most = std::max<std::int64_t>(1, total / std::max<std::int64_t>(1, grain));
  const int parts = static_cast<int>(std::min<std::int64_t>(most, thread_count()));
  if (parts <= 1) return body(state, 0, total);
  const std::int64_t chunk = ((total + parts - 1) / parts + multiple - 1) / multiple * multiple;
  Ranges ranges{total, chunk, body, state};
  run_parts(parts, &run_range, &ranges);
}

const LevelFunctions& level_functions() { return current_functions; }
void set_level_functions(const LevelFunctions& functions) { current_functions = functions; }

}  // namespace tenon::cpu
