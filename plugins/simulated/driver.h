// One simulated device: asynchronous streams over host memory, or over addresses alone.
#pragma once

#include "memory_source.h"
#include "streams.h"

#include <tenon/device/device_driver.h>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace tenon::simulated {

struct DriverConfig {
  std::string device;              ///< "simulated:0"
  std::size_t capacity_bytes = 0;  ///< 0 = unlimited
  std::size_t page_bytes = 0;      ///< of its virtual memory
  bool backed = true;              ///< host memory behind the addresses
  SimulatedMemoryConfig memory;
};

class SimulatedDriver final : public DeviceDriver {
 public:
  explicit SimulatedDriver(DriverConfig config);
  ~SimulatedDriver() override;

  DeviceProperties properties() const override;
  MemorySource& memory() override { return memory_; }
  /// Plain host memory: what matters to a policy is the streams that its blocks wait for.
  MemorySource* pinned_host_memory() override { return &pinned_; }

  StreamRef create_stream(int priority) override;
  void destroy_stream(StreamRef stream) noexcept override { streams_.destroy(stream); }
  void synchronize(StreamRef stream) override { streams_.wait(streams_.mark(stream)); }
  void synchronize() override { streams_.synchronize(); }

  EventRef create_event(bool timing) override;
  void destroy_event(EventRef event) noexcept override;
  void record(EventRef event, StreamRef stream) override;
  void wait(StreamRef stream, EventRef event) override;
  bool query(EventRef event) override;
  void synchronize(EventRef event) override;
  double elapsed_ms(EventRef start, EventRef end) override;

  /// Queued; the caller keeps both ranges alive until the stream has got there. Without bytes behind its addresses the
  /// device gives zeros to the host and takes what it gets.
  void copy(void* destination, const void* source, std::size_t bytes, CopyKind kind, StreamRef stream) override;
  void fill(void* destination, std::uint8_t value, std::size_t bytes, StreamRef stream) override;
  void enqueue(StreamRef stream, std::function<void()> work) override;
  /// Kernels run on the host once their stream has come to them.
  bool begin_kernel(StreamRef stream) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Event {
    bool timing = false;
    std::optional<Ticket> recorded;
    std::shared_ptr<Clock::time_point> at;  ///< written by the stream's worker before the ticket is reached
  };
  Event find(EventRef event);

  const DriverConfig config_;
  Streams streams_;
  SimulatedMemorySource memory_;
  SimulatedMemorySource pinned_;
  std::mutex mutex_;  // guards what follows
  std::map<std::uint64_t, Event> events_;
  std::uint64_t next_event_ = 1;
};

}  // namespace tenon::simulated
