// A simulated device as a memory source.
#include "memory_source.h"

#include <chrono>
#include <thread>
#include <utility>

namespace tenon::simulated {

SimulatedMemorySource::SimulatedMemorySource(std::unique_ptr<MemorySource> memory, Streams& streams, Timeline& timeline,
                                             SimulatedMemoryConfig config, DeviceCounters* counters)
    : memory_(std::move(memory)), streams_(streams), timeline_(timeline), config_(config), counters_(counters) {}

void SimulatedMemorySource::delay(const CallCost& cost, std::size_t bytes) const noexcept {
  const double us = cost.us(bytes);
  if (us <= 0) return;
  if (timeline_.model().is_on) return timeline_.call(us);
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
}

bool SimulatedMemorySource::fails() noexcept {
  const std::int64_t call = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  return call == config_.fail_at || (config_.fail_every > 0 && call % config_.fail_every == 0);
}

void SimulatedMemorySource::count(std::size_t taken_bytes, std::size_t given_back_bytes) const noexcept {
  if (counters_ != nullptr) counters_->used_bytes.fetch_add(taken_bytes - given_back_bytes, std::memory_order_relaxed);
}

void* SimulatedMemorySource::acquire(std::size_t bytes) {
  delay(config_.costs.acquire, bytes);
  void* const address = fails() ? nullptr : memory_->acquire(bytes);
  if (address != nullptr) count(bytes, 0);
  return address;
}

void SimulatedMemorySource::release(void* address, std::size_t bytes) noexcept {
  delay(config_.costs.release, bytes);
  memory_->release(address, bytes);
  count(0, bytes);
}

void* SimulatedMemorySource::reserve(std::size_t bytes) {
  delay(config_.costs.reserve, bytes);
  return memory_->reserve(bytes);
}

void SimulatedMemorySource::unreserve(void* address, std::size_t bytes) noexcept {
  delay(config_.costs.unreserve, bytes);
  memory_->unreserve(address, bytes);
}

Physical SimulatedMemorySource::create(std::size_t bytes) {
  delay(config_.costs.create, bytes);
  const Physical physical = fails() ? Physical{} : memory_->create(bytes);
  if (physical) count(bytes, 0);
  return physical;
}

void SimulatedMemorySource::destroy(Physical physical, std::size_t bytes) noexcept {
  delay(config_.costs.destroy, bytes);
  memory_->destroy(physical, bytes);
  count(0, bytes);
}

void SimulatedMemorySource::map(void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  delay(config_.costs.map, bytes);
  memory_->map(address, bytes, physical, offset);
}

void SimulatedMemorySource::unmap(void* address, std::size_t bytes) noexcept {
  delay(config_.costs.unmap, bytes);
  memory_->unmap(address, bytes);
}

}  // namespace tenon::simulated
