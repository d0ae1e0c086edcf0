// A simulated device as a memory source.
#include "memory_source.h"

#include <thread>
#include <utility>

namespace tenon::simulated {

SimulatedMemorySource::SimulatedMemorySource(std::unique_ptr<MemorySource> memory, Streams& streams,
                                             SimulatedMemoryConfig config)
    : memory_(std::move(memory)), streams_(streams), config_(config) {}

void SimulatedMemorySource::delay() const noexcept {
  if (config_.latency.count() > 0) std::this_thread::sleep_for(config_.latency);
}

bool SimulatedMemorySource::fails() noexcept {
  const std::int64_t call = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  return call == config_.fail_at || (config_.fail_every > 0 && call % config_.fail_every == 0);
}

void* SimulatedMemorySource::acquire(std::size_t bytes) {
  delay();
  return fails() ? nullptr : memory_->acquire(bytes);
}

void SimulatedMemorySource::release(void* address, std::size_t bytes) noexcept {
  delay();
  memory_->release(address, bytes);
}

void* SimulatedMemorySource::reserve(std::size_t bytes) {
  delay();
  return memory_->reserve(bytes);
}

void SimulatedMemorySource::unreserve(void* address, std::size_t bytes) noexcept {
  delay();
  memory_->unreserve(address, bytes);
}

Physical SimulatedMemorySource::create(std::size_t bytes) {
  delay();
  return fails() ? Physical{} : memory_->create(bytes);
}

void SimulatedMemorySource::destroy(Physical physical, std::size_t bytes) noexcept {
  delay();
  memory_->destroy(physical, bytes);
}

void SimulatedMemorySource::map(void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  delay();
  memory_->map(address, bytes, physical, offset);
}

void SimulatedMemorySource::unmap(void* address, std::size_t bytes) noexcept {
  delay();
  memory_->unmap(address, bytes);
}

}  // namespace tenon::simulated
