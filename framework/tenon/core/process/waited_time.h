// WaitedTime: how long this process has waited for another, for deadlines. Time for which the process was stopped as a
// whole (Ctrl-Z, SIGSTOP, a suspended laptop) does not count: who waits does so in short ticks,
// and a tick that took longer than it can counts as a long tick.
#pragma once

#include <algorithm>
#include <chrono>

namespace tenon {

class WaitedTime {
 public:
  static constexpr int kTickMilliseconds = 50;        ///< the longest that a caller waits between two laps
  static constexpr double kLongestTickSeconds = 0.2;  ///< a busy machine comes back late

  using Clock = std::chrono::steady_clock;
  explicit WaitedTime(Clock::time_point start = Clock::now()) : last_(start) {}

  /// Seconds since the last lap or the start; at most those of a long tick.
  double lap(Clock::time_point now = Clock::now()) {
    const double passed = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    const double step = std::min(passed, kLongestTickSeconds);
    seconds_ += step;
    return step;
  }
  /// Of all laps.
  double seconds() const { return seconds_; }

 private:
  Clock::time_point last_;
  double seconds_ = 0;
};

}  // namespace tenon
