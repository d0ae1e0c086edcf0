// SliceClock: the time of a stretch of work on a machine that may be busy. Processor time of the thread leaves out what
// others did meanwhile; where the thread gave the processor up of itself (a mutex, a sleep), that waiting is the
// allocator's, and the wall clock counts.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <ctime>

namespace tenon::measure {

class SliceClock {
 public:
  SliceClock() : waits_(waits()), wall_(std::chrono::steady_clock::now()), processor_ns_(processor_ns()) {}

  double ns() const {
    const double processor = processor_ns() - processor_ns_;
    const double wall = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - wall_).count();
    return waits() == waits_ ? processor : wall;
  }

 private:
  static double processor_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
  }
  static long waits() {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  }

  long waits_;
  std::chrono::steady_clock::time_point wall_;
  double processor_ns_;
};

}  // namespace tenon::measure
