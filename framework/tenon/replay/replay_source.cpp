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

void ReplaySource::taken() {
  peak_reserved_bytes_ = std::max(peak_reserved_bytes_, reserved_bytes_);
  peak_used_bytes_ = std::max<std::uint64_t>(peak_used_bytes_, device_.used_bytes());
}

// Note [Same from]
// Downward, a smaller device changes a history first where something that was granted no longer fits: below the most
// that was ever in use. An attempt at several pages of which the device had only some is refused as a whole either way.
// Address ranges shrink with the device: policies reserve nine eighths of it in whole pages, as PyTorch does. The page
// that was mapped furthest from the beginning of its range has to begin before the end of a smaller one too.
std::uint64_t ReplaySource::same_from_bytes() const {
  const std::uint64_t for_addresses = reach_bytes_ == 0 ? 0 : reach_bytes_ - reach_bytes_ / 9 + 1;
  return std::max(peak_used_bytes_, for_addresses);
}

void* ReplaySource::acquire(std::size_t bytes) {
  void* const address = device_.acquire(bytes);
  if (address == nullptr) return nullptr;
  grow(bytes);
  taken();
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
  if (address == nullptr) return address;
  ranges_.push_back({number(address), number(address) + bytes});
  if (listener_ != nullptr) listener_->address_reserved(number(address), bytes);
  return address;
}

void ReplaySource::unreserve(void* address, std::size_t bytes) noexcept {
  if (listener_ != nullptr) listener_->address_unreserved(number(address), bytes);
  std::erase_if(ranges_, [&](const Range& range) { return range.begin == number(address); });
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
  taken();
  for (const Range& range : ranges_) {
    if (number(address) >= range.begin && number(address) < range.end)
      reach_bytes_ = std::max(reach_bytes_, number(address) - range.begin);
  }
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
