// A simulated device as a memory source: addresses alone or host memory behind them, calls that take their time, calls
// that fail on demand, and the order of the device's streams.
#pragma once

#include "counters.h"
#include "streams.h"
#include "timeline.h"

#include <tenon/memory/memory_source.h>
#include <tenon/memory/sources/call_cost.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace tenon::simulated {

struct SimulatedMemoryConfig {
  CallCosts costs;              ///< of calls that take or give memory
  std::int64_t fail_at = 0;     ///< this acquire or create call (counted from 1) finds the device exhausted
  std::int64_t fail_every = 0;  ///< and so does every k-th; 0 = none
};

class SimulatedMemorySource final : public MemorySource {
 public:
  /// With a cost model its calls take virtual time, without one they delay the caller.
  SimulatedMemorySource(std::unique_ptr<MemorySource> memory, Streams& streams, Timeline& timeline,
                        SimulatedMemoryConfig config, DeviceCounters* counters = nullptr);

  SourceTraits traits() const override { return memory_->traits(); }
  SourceUsage usage() const override { return memory_->usage(); }

  void* acquire(std::size_t bytes) override;
  void release(void* address, std::size_t bytes) noexcept override;
  void* reserve(std::size_t bytes) override;
  void unreserve(void* address, std::size_t bytes) noexcept override;
  Physical create(std::size_t bytes) override;
  void destroy(Physical physical, std::size_t bytes) noexcept override;
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override;
  void unmap(void* address, std::size_t bytes) noexcept override;

  Ticket mark(StreamRef stream) override { return streams_.mark(stream); }
  bool reached(Ticket ticket) override { return streams_.reached(ticket); }
  void wait(Ticket ticket) override {
    timeline_.host_waits({ticket.stream});
    streams_.wait(ticket);
  }
  void synchronize() override {
    timeline_.host_waits();
    streams_.synchronize();
  }

 private:
  void delay(const CallCost& cost, std::size_t bytes) const noexcept;
  bool fails() noexcept;
  void count(std::size_t taken_bytes, std::size_t given_back_bytes) const noexcept;

  const std::unique_ptr<MemorySource> memory_;
  Streams& streams_;
  Timeline& timeline_;
  const SimulatedMemoryConfig config_;
  DeviceCounters* const counters_;  ///< null: nobody is told
  std::atomic<std::int64_t> calls_{0};
};

}  // namespace tenon::simulated
