// Queue: handing values from some threads to others.
#pragma once

#include <tenon/core/durations.h>
#include <tenon/core/error.h>
#include <tenon/data/detail/monitor.h>

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
      const std::lock_guard lock(monitor_);
      values_.push_back(std::move(value));
    }
    monitor_.notify_one();
  }
  /// Waits for a value. Throws Error when none came within `timeout`.
  T pop(std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    const std::lock_guard lock(monitor_);
    const auto filled = [this] { return !values_.empty(); };
    if (!timeout) {
      monitor_.wait(filled);
    } else if (!monitor_.wait_for(*timeout, filled)) {
      throw Error("Timeout in DataLoader queue while waiting for next batch (timeout was " +
                  std::to_string(timeout->count()) + " ms)");
    }
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  /// Drops all values and says how many.
  std::size_t clear() {
    const std::lock_guard lock(monitor_);
    const std::size_t count = values_.size();
    values_.clear();
    return count;
  }

 private:
  Monitor monitor_;
  std::deque<T> values_;
};

}  // namespace tenon::data::detail
