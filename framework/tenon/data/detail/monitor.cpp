// Monitor, Threads: on the standard library's.
#include <tenon/data/detail/monitor.h>

#include <tenon/memory/history/thread_start.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tenon::data::detail {

struct Monitor::Impl {
  std::mutex mutex;
  std::condition_variable condition;
};

Monitor::Monitor() : impl_(std::make_unique<Impl>()) {}
Monitor::~Monitor() = default;

void Monitor::lock() { impl_->mutex.lock(); }
void Monitor::unlock() { impl_->mutex.unlock(); }
void Monitor::notify_one() noexcept { impl_->condition.notify_one(); }
void Monitor::notify_all() noexcept { impl_->condition.notify_all(); }

void Monitor::wait_once() {
  std::unique_lock held(impl_->mutex, std::adopt_lock);
  impl_->condition.wait(held);
  held.release();
}

bool Monitor::wait_once_until(std::chrono::steady_clock::time_point end) {
  std::unique_lock held(impl_->mutex, std::adopt_lock);
  const std::cv_status status = impl_->condition.wait_until(held, end);
  held.release();
  return status == std::cv_status::no_timeout;
}

struct Threads::Impl {
  std::vector<std::thread> threads;
};

Threads::Threads() : impl_(std::make_unique<Impl>()) {}
Threads::~Threads() { join(); }

void Threads::start(std::function<void()> run) {
  impl_->threads.emplace_back([run = std::move(run), start = ThreadStart()] {
    const ThreadStart::Scope scope(start);
    run();
  });
}
std::size_t Threads::size() const noexcept { return impl_->threads.size(); }
void Threads::join() {
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

}  // namespace tenon::data::detail
