// Monitor: what threads that wait for one another rely on.
#include <tenon/data/detail/monitor.h>

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>

namespace tenon::test {
namespace {

using namespace std::chrono_literals;
using data::detail::Monitor;
using data::detail::Threads;

/// A thread that locks the monitor as soon as it can.
struct Rival {
  explicit Rival(Monitor& monitor) {
    thread.start([this, &monitor] {
      const std::lock_guard lock(monitor);
      came.set_value();
    });
  }
  std::promise<void> came;
  std::future<void> comes = came.get_future();
  Threads thread;
};

TEST(Monitor, IsLockedBehindAWaitAsItWasBefore) {
  for (const bool with_end : {false, true}) {
    Monitor monitor;
    bool is_ready = false;
    Threads other;
    std::unique_lock lock(monitor);
    other.start([&] {
      {
        const std::lock_guard inside(monitor);
        is_ready = true;
      }
      monitor.notify_all();
    });
    if (with_end) {
      EXPECT_TRUE(monitor.wait_for(1h, [&] { return is_ready; }));
    } else {
      monitor.wait([&] { return is_ready; });
    }
    Rival rival(monitor);
    EXPECT_EQ(rival.comes.wait_for(20ms), std::future_status::timeout) << "with an end: " << with_end;
    lock.unlock();
    rival.comes.wait();
  }
}

TEST(Monitor, IsLockedBehindAWaitThatCameToItsEnd) {
  Monitor monitor;
  std::unique_lock lock(monitor);
  EXPECT_FALSE(monitor.wait_for(1ms, [] { return false; }));
  Rival rival(monitor);
  EXPECT_EQ(rival.comes.wait_for(20ms), std::future_status::timeout);
  lock.unlock();
  rival.comes.wait();
}

}  // namespace
}  // namespace tenon::test
