// std::atomic, std::mutex and std::thread whose steps a Schedule puts in order. A program of schedule tests includes
// this in front of every file (-include) and compiles the sources under test a second time: what they call std::atomic
// is then ScheduledAtomic, and not a line of theirs is written for the test. Headers that mention those words come
// first.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <random>
#include <semaphore>
#include <set>
#include <shared_mutex>
#include <span>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <support/schedule.h>

namespace tenon::test {

template <class T>
class ScheduledAtomic : public std::atomic<T> {
  using Base = std::atomic<T>;
  static constexpr auto kOrder = std::memory_order_seq_cst;

 public:
  using Base::Base;
  T load(std::memory_order order = kOrder) const { return step().load(order); }
  void store(T value, std::memory_order order = kOrder) { step().store(value, order); }
  T exchange(T value, std::memory_order order = kOrder) { return step().exchange(value, order); }
  T fetch_add(T value, std::memory_order order = kOrder) { return step().fetch_add(value, order); }
  T fetch_sub(T value, std::memory_order order = kOrder) { return step().fetch_sub(value, order); }
  bool compare_exchange_weak(T& seen, T value, std::memory_order order = kOrder) {
    return step().compare_exchange_strong(seen, value, order);
  }
  bool compare_exchange_strong(T& seen, T value, std::memory_order order = kOrder) {
    return step().compare_exchange_strong(seen, value, order);
  }
  operator T() const { return load(); }  // NOLINT
  T operator=(T value) {                 // NOLINT
    store(value);
    return value;
  }
  T operator++() { return fetch_add(1) + 1; }
  T operator--() { return fetch_sub(1) - 1; }
  void wait(T old, std::memory_order order = kOrder) const {
    while (load(order) == old) is_scheduled() ? wait_at(this) : Base::wait(old, order);
  }
  void notify_one() {
    step().notify_one();
    wake(this, false);
  }
  void notify_all() {
    step().notify_all();
    wake(this, true);
  }

 private:
  Base& step() {
    schedule_point();
    return *this;
  }
  const Base& step() const {
    schedule_point();
    return *this;
  }
};

class ScheduledMutex : public std::mutex {
 public:
  void lock() {
    if (!is_scheduled()) return std::mutex::lock();
    while (!try_lock()) wait_at(this);
  }
  bool try_lock() {
    schedule_point();
    return std::mutex::try_lock();
  }
  void unlock() {
    std::mutex::unlock();
    wake(this, true);
    schedule_point();
  }
};

class ScheduledThread : public std::thread {
 public:
  ScheduledThread() = default;
  template <class Body>
  explicit ScheduledThread(Body body) : ScheduledThread(expect_thread(), std::move(body)) {
    schedule_point();
  }
  void join() {
    wait_for_thread(number_);
    std::thread::join();
  }

 private:
  template <class Body>
  ScheduledThread(int number, Body body)
      : std::thread([number, body = std::move(body)]() mutable {
          enter_thread(number);
          body();
          leave_thread();
        }),
        number_(number) {}

  int number_ = -1;
};

}  // namespace tenon::test

namespace std {  // where the sources look for them
template <class T>
using scheduled_atomic = tenon::test::ScheduledAtomic<T>;
using scheduled_mutex = tenon::test::ScheduledMutex;
using scheduled_thread = tenon::test::ScheduledThread;
namespace scheduled_this_thread {  // who gives way has a turn again when others had one
using this_thread::get_id;
inline void yield() { tenon::test::is_scheduled() ? tenon::test::give_way() : this_thread::yield(); }
template <class Duration>
void sleep_for(Duration duration) {
  tenon::test::is_scheduled() ? tenon::test::give_way() : this_thread::sleep_for(duration);
}
}  // namespace scheduled_this_thread
}  // namespace std
#define atomic scheduled_atomic
#define mutex scheduled_mutex
#define thread scheduled_thread
#define this_thread scheduled_this_thread
