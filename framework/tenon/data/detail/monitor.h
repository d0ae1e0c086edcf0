// Monitor: a mutex with one condition, for threads that wait for one another. Threads: threads that end together. The
// standard's own headers for both are a good part of what a compiler reads for tenon.h.
#pragma once

#include <tenon/core/durations.h>
#include <tenon/core/export.h>
#include <tenon/core/owned.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace tenon::data::detail {

/// Locked by std::unique_lock<Monitor> or std::lock_guard<Monitor>.
class TENON_API Monitor {
 public:
  Monitor();
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  void lock();
  void unlock();
  /// Wakes one of those that wait, respectively all. Locked or not.
  void notify_one() noexcept;
  void notify_all() noexcept;

  /// Waits until `ready()`, which is asked while locked. Locked by the caller; others may lock it meanwhile.
  template <class Ready>
  void wait(const Ready& ready) {
    while (!ready()) wait_once();
  }
  /// The same for `timeout` at most; whether it is ready.
  template <class Ready>
  bool wait_for(std::chrono::milliseconds timeout, const Ready& ready) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (!ready()) {
      if (!wait_once_until(end)) return ready();
    }
    return true;
  }

 private:
  struct Impl;
  void wait_once();
  /// False at `end`.
  bool wait_once_until(std::chrono::steady_clock::time_point end);

  Owned<Impl> impl_;
};

class TENON_API Threads {
 public:
  Threads();
  /// join().
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  /// Starts a thread. Throws std::system_error where there can be no more.
  void start(std::function<void()> run);
  /// How many were started since the last join().
  std::size_t size() const noexcept;
  /// Waits for the end of all.
  void join();

 private:
  struct Impl;
  Owned<Impl> impl_;
};

}  // namespace tenon::data::detail
