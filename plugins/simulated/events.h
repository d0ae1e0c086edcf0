// Events of all simulated devices: points in a stream with the time at which they were reached. One table for all,
// since a stream of one device may wait for an event of another.
#pragma once

#include "streams.h"

#include <tenon/device/device_driver.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace tenon::simulated {

struct Event {
  using Clock = std::chrono::steady_clock;
  bool timing = false;
  std::optional<Streams::Point> recorded;
  std::shared_ptr<Clock::time_point> at;  ///< written by the stream's worker before the point is reached
  double virtual_us = 0;                  ///< on the timeline of the device that recorded it
};

/// Thread-safe.
class Events {
 public:
  EventRef create(bool timing);
  void destroy(EventRef event) noexcept;
  /// A copy. Throws Error for an event that does not exist.
  Event find(EventRef event);
  void update(EventRef event, Event updated);

 private:
  std::mutex mutex_;  // guards what follows
  std::map<std::uint64_t, Event> events_;
  std::uint64_t next_ = 1;
};

}  // namespace tenon::simulated
