// One simulated device: asynchronous streams over host memory, or over addresses alone.
#pragma once

#include "cost_model.h"
#include "counters.h"
#include "events.h"
#include "memory_source.h"
#include "streams.h"
#include "timeline.h"

#include <tenon/device/device_driver.h>
#include <tenon/device/order/virtual_time.h>

#include <memory>
#include <string>

namespace tenon::simulated {

struct DriverConfig {
  std::string device;              ///< "simulated:0"
  std::size_t capacity_bytes = 0;  ///< 0 = unlimited
  std::size_t page_bytes = 0;      ///< of its virtual memory
  bool backed = true;              ///< host memory behind the addresses
  SimulatedMemoryConfig memory;
  CostModel costs;
  std::shared_ptr<Events> events;      ///< of all devices
  DeviceCounters* counters = nullptr;  ///< outlive the driver
};

class SimulatedDriver final : public DeviceDriver, public KeepsVirtualTime {
 public:
  explicit SimulatedDriver(DriverConfig config);
  ~SimulatedDriver() override;

  DeviceProperties properties() const override;
  MemorySource& memory() override { return memory_; }
  /// Plain host memory: what matters to a policy is the streams that its blocks wait for.
  MemorySource* pinned_host_memory() override { return &pinned_; }

  StreamRef create_stream(int priority) override;
  void destroy_stream(StreamRef stream) noexcept override { streams_.destroy(stream); }
  void synchronize(StreamRef stream) override;
  void synchronize() override;

  EventRef create_event(bool timing) override { return config_.events->create(timing); }
  void destroy_event(EventRef event) noexcept override { config_.events->destroy(event); }
  void record(EventRef event, StreamRef stream) override;
  void wait(StreamRef stream, EventRef event) override;
  bool query(EventRef event) override;
  void synchronize(EventRef event) override;
  /// In virtual time where there is a cost model.
  double elapsed_ms(EventRef start, EventRef end) override;

  /// Queued; the caller keeps both ranges alive until the stream has got there. Without bytes behind its addresses the
  /// device gives zeros to the host and takes what it gets.
  void copy(void* destination, const void* source, std::size_t bytes, CopyKind kind, StreamRef stream) override;
  void fill(void* destination, std::uint8_t value, std::size_t bytes, StreamRef stream) override;
  void enqueue(StreamRef stream, std::function<void()> work) override;
  /// Kernels run on the host once their stream has come to them.
  bool begin_kernel(StreamRef stream) override;

  void queue_kernel(StreamRef stream, const KernelWork& work) override { timeline_.kernel(stream, work); }
  DeviceActivity activity() override { return timeline_.activity(); }
  void reset_activity() override { timeline_.reset_activity(); }

 private:
  const DriverConfig config_;
  Timeline timeline_;
  Streams streams_;
  SimulatedMemorySource memory_;
  SimulatedMemorySource pinned_;
};

}  // namespace tenon::simulated
