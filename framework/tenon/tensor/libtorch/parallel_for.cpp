// parallel_for: one thread a part beside the calling one.
#include <tenon/core/error.h>
#include <tenon/memory/history/thread_start.h>
#include <tenon/tensor/libtorch/parallel_for.h>
#include <tenon/tensor/libtorch/threads_and_devices.h>

#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace tenon {

namespace {

thread_local int part_number = -1;  ///< -1 outside of a parallel_for()

}  // namespace

int get_thread_num() { return std::max(part_number, 0); }
bool in_parallel_region() { return part_number >= 0; }

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& f) {
  if (grain < 0) throw Error("parallel_for: the grain must not be negative, got " + std::to_string(grain));
  if (begin >= end) return;
  const std::int64_t length = end - begin;
  const std::int64_t least = std::max<std::int64_t>(grain, 1);
  const std::int64_t parts = in_parallel_region() ? 1 : std::min<std::int64_t>(get_num_threads(), divup(length, least));
  if (parts <= 1) {
    f(begin, end);
    return;
  }
  const std::int64_t size = std::max(least, divup(length, parts));
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(parts));
  const auto work = [&](std::int64_t part) {
    part_number = static_cast<int>(part);
    const std::int64_t from = begin + part * size;
    try {
      if (from < end) f(from, std::min(end, from + size));
    } catch (...) {
      errors[static_cast<std::size_t>(part)] = std::current_exception();
    }
    part_number = -1;
  };
  {
    const ThreadStart start;
    std::vector<std::jthread> threads;
    for (std::int64_t part = 1; part < parts; ++part)
      threads.emplace_back([&, part] {
        const ThreadStart::Scope scope(start);
        work(part);
      });
    work(0);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace tenon
