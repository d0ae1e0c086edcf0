// Timeline: the virtual time of one simulated device. Streams run in order, kernels one at a time on the whole device,
// copies over a link beside them:
//
//   stream 1   |kernel      |          |copy out |
//   stream 2   |copy in |         |kernel   |
//
// A kernel or copy begins when the host has queued it, its stream has come to it and what it runs on is free; work that
// was queued later on another stream may go before it where there is a gap.
#pragma once

#include "cost_model.h"
#include "counters.h"

#include <tenon/device/order/virtual_time.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace tenon::simulated {

/// Thread-safe. Without a cost model nothing takes time.
class Timeline {
 public:
  Timeline(const CostModel& model, DeviceCounters& counters) : model_(model), counters_(counters) {}

  const CostModel& model() const { return model_; }

  void kernel(StreamRef stream, const KernelWork& work);
  void fill(StreamRef stream, double bytes);
  void copy_within(StreamRef stream, double bytes);
  enum class Direction { kIn, kOut, kToPeer };
  void copy_over(StreamRef stream, Direction direction, double bytes);

  /// The host calls the driver.
  void call(double us) const;
  /// Where the stream ends now.
  double end_of(StreamRef stream);
  /// What is queued on the stream from here on begins at `us` or later.
  void hold(StreamRef stream, double us);
  /// The host waits for the stream, for all streams, or for a point of one.
  void host_waits(StreamRef stream);
  void host_waits();
  void host_waits_until(double us) const;

  DeviceActivity activity();
  void reset_activity();

 private:
  struct Span {
    double begin = 0, end = 0;
  };
  enum Engine : std::uint8_t { kCompute, kCopyIn, kCopyOut, kCopyToPeer, kEngines };
  void place(Engine engine, StreamRef stream, double us);
  double free_from(const std::vector<Span>& busy, double ready, double us) const;
  void publish(Engine engine, double us, double end);
  void settle();
  void add_spans(DeviceActivity& total) const;

  const CostModel model_;
  DeviceCounters& counters_;
  std::mutex mutex_;  // guards what follows
  double kernel_us_ever_ = 0;
  std::map<std::uint64_t, double> ends_;          ///< by stream
  std::array<std::vector<Span>, kEngines> busy_;  ///< in order, what has not been settled
  DeviceActivity total_;                          ///< counts, and the times of spans that are settled
};

}  // namespace tenon::simulated
