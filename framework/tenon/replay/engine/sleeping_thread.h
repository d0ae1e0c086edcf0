// A second thread, which sleeps while something is timed: a process with one thread flatters every mutex, and no
// training run has one.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace tenon::replay {

class SleepingThread {
 public:
  SleepingThread()
      : thread_([this] {
          std::unique_lock lock(mutex_);
          ended_.wait(lock, [this] { return is_over_; });
        }) {}
  ~SleepingThread() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }
  SleepingThread(const SleepingThread&) = delete;
  SleepingThread& operator=(const SleepingThread&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace tenon::replay
