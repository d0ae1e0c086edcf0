// One simulated device: copies and host functions go through its streams, events are tickets with a time.
#include "driver.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/host_memory_source.h>

#include <cstring>
#include <memory>
#include <utility>

namespace tenon::simulated {

namespace {

std::unique_ptr<MemorySource> make_memory(const DriverConfig& config) {
  if (config.backed) {
    return std::make_unique<HostMemorySource>(HostMemoryConfig{
        .device = config.device, .capacity_bytes = config.capacity_bytes, .page_bytes = config.page_bytes});
  }
  AddressOnlySource::Config addresses;
  addresses.device = config.device;
  addresses.capacity_bytes = config.capacity_bytes;
  addresses.page_bytes = config.page_bytes;
  return std::make_unique<AddressOnlySource>(addresses);
}

}  // namespace

SimulatedDriver::SimulatedDriver(DriverConfig config)
    : KeepsVirtualTime(config.costs.is_on),
      config_(std::move(config)),
      timeline_(config_.costs, *config_.counters),
      memory_(make_memory(config_), streams_, timeline_, config_.memory, config_.counters),
      pinned_(std::make_unique<HostMemorySource>(HostMemoryConfig{.device = "pinned host memory of " + config_.device}),
              streams_, timeline_, {}) {
  config_.counters->is_open.store(1, std::memory_order_relaxed);
  config_.counters->capacity_bytes.store(config_.capacity_bytes, std::memory_order_relaxed);
}

SimulatedDriver::~SimulatedDriver() { streams_.synchronize(); }

DeviceProperties SimulatedDriver::properties() const {
  const std::string size = config_.capacity_bytes == 0 ? "unlimited" : format_bytes(config_.capacity_bytes);
  DeviceProperties properties{.name = "simulated, " + size,
                              .capacity_bytes = config_.capacity_bytes,
                              .compute_units = 1,
                              .host_accessible = config_.backed,
                              .asynchronous = true,
                              .computes = config_.backed,
                              .details = {{"memory", config_.backed ? "backed by host memory" : "addresses only"},
                                          {"virtual memory page", format_size_exact(config_.page_bytes)}}};
  if (has_cost_model()) properties.details.emplace_back("cost model", config_.costs.words);
  return properties;
}

StreamRef SimulatedDriver::create_stream(int) { return streams_.create(); }

void SimulatedDriver::synchronize(StreamRef stream) {
  timeline_.host_waits(stream);
  streams_.wait(streams_.mark(stream));
}

void SimulatedDriver::synchronize() {
  timeline_.host_waits();
  streams_.synchronize();
}

void SimulatedDriver::record(EventRef event, StreamRef stream) {
  Event updated = config_.events->find(event);
  if (updated.timing) {
    updated.at = std::make_shared<Event::Clock::time_point>();
    streams_.enqueue(stream, [at = updated.at] { *at = Event::Clock::now(); });
  }
  updated.recorded = streams_.point(stream);
  updated.virtual_us = timeline_.end_of(stream);
  config_.events->update(event, std::move(updated));
}

void SimulatedDriver::wait(StreamRef stream, EventRef event) {
  const Event awaited = config_.events->find(event);
  if (!awaited.recorded) return;  // an event that was never recorded holds nobody up, as in CUDA
  timeline_.hold(stream, awaited.virtual_us);
  if (awaited.recorded->reached() || awaited.recorded->is_on_same_stream(streams_.point(stream))) return;
  streams_.enqueue(stream, [point = *awaited.recorded] { point.wait(); });
}

bool SimulatedDriver::query(EventRef event) {
  const Event asked = config_.events->find(event);
  return !asked.recorded || asked.recorded->reached();
}

void SimulatedDriver::synchronize(EventRef event) {
  const Event awaited = config_.events->find(event);
  if (!awaited.recorded) return;
  timeline_.host_waits_until(awaited.virtual_us);
  awaited.recorded->wait();
}

double SimulatedDriver::elapsed_ms(EventRef start, EventRef end) {
  const Event first = config_.events->find(start);
  const Event last = config_.events->find(end);
  if (!first.at || !last.at) {
    throw Error(config_.device + ": elapsed_ms needs two events that were created with timing and recorded");
  }
  if (!first.recorded->reached() || !last.recorded->reached()) {
    throw Error(config_.device + ": elapsed_ms before both events were reached; synchronize them first");
  }
  if (has_cost_model()) return (last.virtual_us - first.virtual_us) / 1000;
  return std::chrono::duration<double, std::milli>(*last.at - *first.at).count();
}

void SimulatedDriver::copy(void* destination, const void* source, std::size_t bytes, CopyKind kind, StreamRef stream) {
  if (bytes == 0) return;
  const auto size = static_cast<double>(bytes);
  switch (kind) {
    case CopyKind::kHostToDevice:
      timeline_.copy_over(stream, Timeline::Direction::kIn, size);
      break;
    case CopyKind::kDeviceToHost:
      timeline_.copy_over(stream, Timeline::Direction::kOut, size);
      break;
    case CopyKind::kDeviceToDevice:
      timeline_.copy_within(stream, size);
      break;
    case CopyKind::kPeerToPeer:
      timeline_.copy_over(stream, Timeline::Direction::kToPeer, size);
      break;
  }
  if (config_.backed) {
    streams_.enqueue(stream, [=] { std::memmove(destination, source, bytes); });
  } else if (kind == CopyKind::kDeviceToHost) {
    streams_.enqueue(stream, [=] { std::memset(destination, 0, bytes); });
  }
}

void SimulatedDriver::fill(void* destination, std::uint8_t value, std::size_t bytes, StreamRef stream) {
  if (bytes == 0) return;
  timeline_.fill(stream, static_cast<double>(bytes));
  if (!config_.backed) return;
  streams_.enqueue(stream, [=] { std::memset(destination, value, bytes); });
}

void SimulatedDriver::enqueue(StreamRef stream, std::function<void()> work) {
  streams_.enqueue(stream, std::move(work));
}

bool SimulatedDriver::begin_kernel(StreamRef stream) {
  if (!config_.backed) return false;
  streams_.wait(streams_.mark(stream));
  return true;
}

}  // namespace tenon::simulated
