// ReplaySource over the address-only device.
#include <tenon/replay/engine/replay_source.h>

#include <algorithm>

namespace tenon::replay {

ReplaySource::ReplaySource(std::size_t capacity_bytes, std::span<const RecordedSegment> acquired)
    : device_({.device = "replay:0", .capacity_bytes = capacity_bytes}), recorded_(acquired) {}

void ReplaySource::taken() { peak_used_bytes_ = std::max<std::uint64_t>(peak_used_bytes_, device_.used_bytes()); }

// Note [Same from]
// Downward, a smaller device changes a history first where something that was granted no longer fits: below the most
// that was ever in use. An attempt at several pages of which the device had only some is refused as a whole either way.
// Address ranges shrink with the device: policies reserve nine eighths of it in whole pages, as PyTorch does. Each
// decision that looks at a range's length is a threshold of it, and the policy tells on which side it was by how much:
// a hole at the end was long enough for a request (whether or not the device then had the pages), a block at the end
// could grow further than another.
std::uint64_t ReplaySource::same_from_bytes() const { return std::max(peak_used_bytes_, ranges_same_from_bytes_); }

void ReplaySource::relied_on(std::size_t page_bytes, std::size_t range_bytes) noexcept {
  // The smallest c with (c + c / 8) rounded up to pages >= range_bytes, which is c + c / 8 > `less`.
  const std::uint64_t less = (range_bytes + page_bytes - 1) / page_bytes * page_bytes - page_bytes;
  std::uint64_t capacity = less / 9 * 8;
  while (capacity + capacity / 8 <= less) ++capacity;
  ranges_same_from_bytes_ = std::max(ranges_same_from_bytes_, capacity);
}

void* ReplaySource::acquire(std::size_t bytes) {
  void* const address = device_.acquire(bytes);
  if (address == nullptr) return nullptr;
  taken();
  return recorded_.place(address, bytes);
}

void ReplaySource::release(void* address, std::size_t bytes) noexcept {
  device_.release(recorded_.give_back(address), bytes);
}

void* ReplaySource::reserve(std::size_t bytes) { return device_.reserve(bytes); }

void ReplaySource::unreserve(void* address, std::size_t bytes) noexcept { device_.unreserve(address, bytes); }

Physical ReplaySource::create(std::size_t bytes) { return device_.create(bytes); }

void ReplaySource::destroy(Physical physical, std::size_t bytes) noexcept { device_.destroy(physical, bytes); }

void ReplaySource::map(void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  device_.map(address, bytes, physical, offset);
  // Here and not in create: pages of an attempt that ran out half-way never came into use.
  taken();
}

void ReplaySource::unmap(void* address, std::size_t bytes) noexcept { device_.unmap(address, bytes); }

Ticket ReplaySource::mark(StreamRef stream) {
  if (is_waiting_stream(stream.id)) {
    const std::uint64_t slot = stream.id - kWaitingStreamBase;
    if (slot >= marked_.size()) marked_.resize(slot + 1);
    marked_[slot] = next_ticket_;
  }
  return {stream.id, next_ticket_++};
}

bool ReplaySource::is_complete(std::uint32_t slot) const {
  const std::uint64_t marked = slot < marked_.size() ? marked_[slot] : 0;
  return marked <= completed_everywhere_ || (slot < completed_.size() && marked <= completed_[slot]);
}

bool ReplaySource::is_known_reached(StreamRef stream, std::uint64_t moment) const {
  if (known_everywhere_ >= moment) return true;
  const auto known = known_.find(stream.id);
  return known != known_.end() && known->second >= moment;
}

bool ReplaySource::reached(Ticket ticket) {
  if (!is_waiting_stream(ticket.stream)) {
    std::uint64_t& known = known_[ticket.stream];
    known = std::max(known, ticket.value);
    return true;
  }
  if (ticket.value <= completed_everywhere_) return true;
  const std::uint64_t slot = ticket.stream - kWaitingStreamBase;
  return slot < completed_.size() && ticket.value <= completed_[slot];
}

void ReplaySource::wait(Ticket ticket) {
  if (reached(ticket)) return;
  complete(static_cast<std::uint32_t>(ticket.stream - kWaitingStreamBase));
  if (when_waited_) when_waited_();
}

void ReplaySource::synchronize() {
  completed_everywhere_ = known_everywhere_ = next_ticket_ - 1;
  if (when_waited_) when_waited_();
}

void ReplaySource::complete(std::uint32_t slot) {
  if (slot >= completed_.size()) completed_.resize(slot + 1);
  completed_[slot] = next_ticket_ - 1;
}

}  // namespace tenon::replay
