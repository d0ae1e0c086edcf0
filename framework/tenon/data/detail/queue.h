// Queue: handing values from some threads to others.
#pragma once

#include <tenon/core/error.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace tenon::data::detail {

template <class T>
class Queue {
 public:
  void push(T value) {
    {
      const std::lock_guard lock(mutex_);
      values_.push_back(std::move(value));
    }
    ready_.notify_one();
  }
  /// Waits for a value. Throws Error when none came within `timeout`.
  T pop(std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    std::unique_lock lock(mutex_);
    const auto filled = [this] { return !values_.empty(); };
    if (!timeout) {
      ready_.wait(lock, filled);
    } else if (!ready_.wait_for(lock, *timeout, filled)) {
      throw Error("Timeout in DataLoader queue while waiting for next batch (timeout was " +
                  std::to_string(timeout->count()) + " ms)");
    }
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  /// Drops all values and says how many.
  std::size_t clear() {
    const std::lock_guard lock(mutex_);
    const std::size_t count = values_.size();
    values_.clear();
    return count;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<T> values_;
};

}  // namespace tenon::data::detail
