// ReplaySource over the address-only device.
#include <tenon/replay/replay_source.h>

#include <algorithm>

namespace tenon::replay {

namespace {
std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }
}  // namespace

ReplaySource::ReplaySource(std::size_t capacity_bytes, SourceListener* listener)
    : device_({.device = "replay:0", .capacity_bytes = capacity_bytes}), listener_(listener) {}

void ReplaySource::grow(std::uint64_t bytes) {
  reserved_bytes_ += bytes;
  ++calls_.allocations;
}

void* ReplaySource::acquire(std::size_t bytes) {
  void* const address = device_.acquire(bytes);
  if (address == nullptr) return nullptr;
  grow(bytes);
  peak_reserved_bytes_ = std::max(peak_reserved_bytes_, reserved_bytes_);
  if (listener_ != nullptr) listener_->acquired(number(address), bytes);
  return address;
}

void ReplaySource::release(void* address, std::size_t bytes) noexcept {
  if (listener_ != nullptr) listener_->released(number(address), bytes);
  device_.release(address, bytes);
  reserved_bytes_ -= bytes;
  ++calls_.frees;
}

void* ReplaySource::reserve(std::size_t bytes) {
  void* const address = device_.reserve(bytes);
  if (address != nullptr && listener_ != nullptr) listener_->address_reserved(number(address), bytes);
  return address;
}

void ReplaySource::unreserve(void* address, std::size_t bytes) noexcept {
  if (listener_ != nullptr) listener_->address_unreserved(number(address), bytes);
  device_.unreserve(address, bytes);
}

Physical ReplaySource::create(std::size_t bytes) {
  const Physical physical = device_.create(bytes);
  if (!physical) return physical;
  grow(bytes);
  if (listener_ != nullptr) listener_->created(physical.value, bytes);
  return physical;
}

void ReplaySource::destroy(Physical physical, std::size_t bytes) noexcept {
  if (listener_ != nullptr) listener_->destroyed(physical.value, bytes);
  device_.destroy(physical, bytes);
  reserved_bytes_ -= bytes;
  ++calls_.frees;
}

void ReplaySource::map(void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  device_.map(address, bytes, physical, offset);
  // Here and not in create: pages of an attempt that ran out half-way were never anybody's.
  peak_reserved_bytes_ = std::max(peak_reserved_bytes_, reserved_bytes_);
  if (listener_ != nullptr) listener_->mapped(number(address), bytes, physical.value, offset);
  ++calls_.maps;
}

void ReplaySource::unmap(void* address, std::size_t bytes) noexcept {
  if (listener_ != nullptr) listener_->unmapped(number(address), bytes);
  device_.unmap(address, bytes);
  ++calls_.unmaps;
}

Ticket ReplaySource::mark(StreamRef stream) { return {stream.id, next_ticket_++}; }

bool ReplaySource::reached(Ticket ticket) {
  if (ticket.stream < kWaitingStreamBase || ticket.value <= completed_everywhere_) return true;
  const std::uint64_t slot = ticket.stream - kWaitingStreamBase;
  return slot < completed_.size() && ticket.value <= completed_[slot];
}

void ReplaySource::wait(Ticket ticket) {
  if (ticket.stream < kWaitingStreamBase || reached(ticket)) return;
  complete(static_cast<std::uint32_t>(ticket.stream - kWaitingStreamBase));
  if (listener_ != nullptr) listener_->synchronized();
}

void ReplaySource::synchronize() {
  completed_everywhere_ = next_ticket_ - 1;
  ++calls_.synchronizations;
  if (listener_ != nullptr) listener_->synchronized();
}

void ReplaySource::complete(std::uint32_t slot) {
  if (slot >= completed_.size()) completed_.resize(slot + 1);
  completed_[slot] = next_ticket_ - 1;
}

}  // namespace tenon::replay
