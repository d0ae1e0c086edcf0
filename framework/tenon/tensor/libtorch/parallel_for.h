// at::parallel_for for loops of the caller's. Tenon's own kernels have the threads of their backend; these are started
// for one call and end with it, so that a loop should have work for a good fraction of a millisecond in each part.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <functional>
#include <mutex>

namespace tenon {

/// f(from, to) for parts of [begin, end) that cover it and have `grain` elements at least (the last may have fewer), on
/// up to get_num_threads() threads, the calling one among them. In a part no further threads are started. Rethrows the
/// first error when all parts have ended.
TENON_API void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                            const std::function<void(std::int64_t, std::int64_t)>& f);
/// f(from, to, identity) of parts, combined in no particular order by `combine`.
template <class T, class Function, class Combine>
T parallel_reduce(std::int64_t begin, std::int64_t end, std::int64_t grain, const T& identity, const Function& f,
                  const Combine& combine) {
  std::mutex mutex;
  T result = identity;
  parallel_for(begin, end, grain, [&](std::int64_t from, std::int64_t to) {
    const T part = f(from, to, identity);
    const std::lock_guard lock(mutex);
    result = combine(result, part);
  });
  return result;
}
/// Which part of the innermost parallel_for() this thread works at; 0 outside.
TENON_API int get_thread_num();
/// Whether this thread works at one of several parts of a parallel_for(); not where there is only one.
TENON_API bool in_parallel_region();
/// x / y, rounded up; for x of 0 and more, and y above 0.
inline std::int64_t divup(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

}  // namespace tenon
