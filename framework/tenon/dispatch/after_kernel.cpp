// By thread: no other thread's operator may be in between.
#include <tenon/dispatch/after_kernel.h>

#include <utility>
#include <vector>

namespace tenon {
namespace {

struct Waiting {
  std::vector<std::function<void()>> calls;
  ~Waiting() { detail::waiting_for_kernels.fetch_sub(static_cast<int>(calls.size()), std::memory_order_relaxed); }
};

Waiting& waiting() {
  static thread_local Waiting instance;
  return instance;
}

}  // namespace

void after_kernel(std::function<void()> what) {
  waiting().calls.push_back(std::move(what));
  detail::waiting_for_kernels.fetch_add(1, std::memory_order_relaxed);
}

void run_after_kernel() {
  const auto calls = std::exchange(waiting().calls, {});
  detail::waiting_for_kernels.fetch_sub(static_cast<int>(calls.size()), std::memory_order_relaxed);
  for (const auto& call : calls) call();
}

}  // namespace tenon
