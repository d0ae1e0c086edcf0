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
    : config_(std::move(config)),
      memory_(make_memory(config_), streams_, config_.memory),
      pinned_(std::make_unique<HostMemorySource>(HostMemoryConfig{.device = "pinned host memory of " + config_.device}),
              streams_, {}) {}

SimulatedDriver::~SimulatedDriver() { streams_.synchronize(); }

DeviceProperties SimulatedDriver::properties() const {
  const std::string size = config_.capacity_bytes == 0 ? "unlimited" : format_bytes(config_.capacity_bytes);
  return {.name = "simulated, " + size,
          .capacity_bytes = config_.capacity_bytes,
          .compute_units = 1,
          .host_accessible = config_.backed,
          .asynchronous = true,
          .computes = config_.backed,
          .details = {{"memory", config_.backed ? "backed by host memory" : "addresses only"},
                      {"virtual memory page", format_size_exact(config_.page_bytes)}}};
}

StreamRef SimulatedDriver::create_stream(int) { return streams_.create(); }

EventRef SimulatedDriver::create_event(bool timing) {
  std::lock_guard lock(mutex_);
  const EventRef event{next_event_++};
  events_[event.id].timing = timing;
  return event;
}

void SimulatedDriver::destroy_event(EventRef event) noexcept {
  std::lock_guard lock(mutex_);
  events_.erase(event.id);
}

SimulatedDriver::Event SimulatedDriver::find(EventRef event) {
  std::lock_guard lock(mutex_);
  const auto found = events_.find(event.id);
  if (found == events_.end()) throw Error(config_.device + ": there is no event " + std::to_string(event.id));
  return found->second;
}

void SimulatedDriver::record(EventRef event, StreamRef stream) {
  Event updated = find(event);
  if (updated.timing) {
    updated.at = std::make_shared<Clock::time_point>();
    streams_.enqueue(stream, [at = updated.at] { *at = Clock::now(); });
  }
  updated.recorded = streams_.mark(stream);
  std::lock_guard lock(mutex_);
  events_[event.id] = std::move(updated);
}

void SimulatedDriver::wait(StreamRef stream, EventRef event) {
  const std::optional<Ticket> recorded = find(event).recorded;
  if (!recorded || streams_.reached(*recorded)) return;  // an event that was never recorded holds nobody up, as in CUDA
  streams_.enqueue(stream, [this, ticket = *recorded] { streams_.wait(ticket); });
}

bool SimulatedDriver::query(EventRef event) {
  const std::optional<Ticket> recorded = find(event).recorded;
  return !recorded || streams_.reached(*recorded);
}

void SimulatedDriver::synchronize(EventRef event) {
  if (const std::optional<Ticket> recorded = find(event).recorded) streams_.wait(*recorded);
}

double SimulatedDriver::elapsed_ms(EventRef start, EventRef end) {
  const Event first = find(start);
  const Event last = find(end);
  if (!first.at || !last.at) {
    throw Error(config_.device + ": elapsed_ms needs two events that were created with timing and recorded");
  }
  if (!streams_.reached(*first.recorded) || !streams_.reached(*last.recorded)) {
    throw Error(config_.device + ": elapsed_ms before both events were reached; synchronize them first");
  }
  return std::chrono::duration<double, std::milli>(*last.at - *first.at).count();
}

void SimulatedDriver::copy(void* destination, const void* source, std::size_t bytes, CopyKind kind, StreamRef stream) {
  if (bytes == 0) return;
  if (config_.backed) {
    streams_.enqueue(stream, [=] { std::memmove(destination, source, bytes); });
  } else if (kind == CopyKind::kDeviceToHost) {
    streams_.enqueue(stream, [=] { std::memset(destination, 0, bytes); });
  }
}

void SimulatedDriver::fill(void* destination, std::uint8_t value, std::size_t bytes, StreamRef stream) {
  if (bytes == 0 || !config_.backed) return;
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
