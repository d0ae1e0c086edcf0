// Text form in, figures out.
#include "trace_driver.h"

#include <tenon/core/error.h>

#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <stdexcept>

namespace tenon::test {

Trace read_trace(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) throw std::runtime_error("cannot open " + path);
  Trace trace;
  char line[4096];
  while (gzgets(file, line, sizeof line)) {
    std::istringstream in(line);
    TraceEvent event{};
    in >> event.kind;
    switch (event.kind) {
      case 'a':
        in >> event.id >> event.bytes >> event.stream;
        break;
      case 'f':
        in >> event.id;
        break;
      case 'u':
        in >> event.id >> event.stream;
        break;
      case 'e':
        break;
      default:
        continue;
    }
    trace.events.push_back(event);
    trace.ids = std::max(trace.ids, event.id + 1);
  }
  gzclose(file);
  return trace;
}

void* CountingSource::acquire(std::size_t bytes) {
  void* address = upstream_.acquire(bytes);
  if (address) reserved_bytes += bytes, ++allocations;
  if (address) ordinals_[reinterpret_cast<std::uintptr_t>(address)] = next_ordinal_++;
  return address;
}

void* CountingSource::reserve(std::size_t bytes) {
  void* address = upstream_.reserve(bytes);
  if (address) ordinals_[reinterpret_cast<std::uintptr_t>(address)] = next_ordinal_++;
  return address;
}

std::pair<std::uint64_t, std::uint64_t> CountingSource::place_of(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto start = std::prev(ordinals_.upper_bound(at));
  return {start->second, at - start->first};
}

void CountingSource::release(void* address, std::size_t bytes) noexcept {
  reserved_bytes -= bytes;
  ++frees;
  upstream_.release(address, bytes);
}

Physical CountingSource::create(std::size_t bytes) {
  const Physical physical = upstream_.create(bytes);
  if (physical) reserved_bytes += bytes, ++allocations;
  return physical;
}

void CountingSource::destroy(Physical physical, std::size_t bytes) noexcept {
  reserved_bytes -= bytes;
  ++frees;
  upstream_.destroy(physical, bytes);
}

namespace {

class Fnv1a {
 public:
  void add(std::size_t event, std::size_t reserved) {
    char line[64];
    const int length = std::snprintf(line, sizeof line, "%zu %zu\n", event, reserved);
    for (int i = 0; i < length; ++i) byte(static_cast<unsigned char>(line[i]));
  }
  void add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i, number >>= 8) byte(number & 255);
  }
  std::string hex() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash_));
    return text;
  }

 private:
  void byte(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3u; }

  // The start value of the files in expected/: the standard one, 14695981039346656037, without its last digit.
  std::uint64_t hash_ = 1469598103934665603u;
};

}  // namespace

Outcome play(const Trace& trace, std::size_t capacity_bytes, const MakeAllocator& make,
             const std::function<void(Allocator&)>& after_each) {
  AddressOnlySource device({.capacity_bytes = capacity_bytes});
  CountingSource source(device);
  const std::unique_ptr<Allocator> policy = make(source);
  std::vector<Block> blocks(trace.ids);
  std::vector<std::size_t> sizes(trace.ids);
  Outcome outcome;
  Fnv1a series, placement;
  std::size_t requested = 0;
  std::size_t last_reserved = 0;
  for (std::size_t index = 0; index < trace.events.size(); ++index) {
    const TraceEvent& event = trace.events[index];
    switch (event.kind) {
      case 'a':
        sizes[event.id] = event.bytes;
        requested += event.bytes;
        try {
          blocks[event.id] = policy->allocate({.bytes = event.bytes, .stream = {event.stream}});
          const auto [segment, offset] = source.place_of(blocks[event.id].data);
          for (const std::uint64_t number : {std::uint64_t{index}, segment, offset}) placement.add(number);
        } catch (const OutOfMemory&) {
          ++outcome.ooms;
          if (!outcome.first_oom_event) outcome.first_oom_event = index;
        }
        break;
      case 'f':
        requested -= sizes[event.id];
        if (Block& block = blocks[event.id]; block.data) {
          policy->deallocate(block, block.request.stream);
          block = {};
        }
        break;
      case 'u':
        if (blocks[event.id].data) policy->record_use(blocks[event.id], {event.stream});
        break;
      default:
        policy->trim(0);
    }
    outcome.peak_requested_bytes = std::max(outcome.peak_requested_bytes, requested);
    if (source.reserved_bytes != last_reserved || index == 0) {
      last_reserved = source.reserved_bytes;
      outcome.peak_reserved_bytes = std::max(outcome.peak_reserved_bytes, last_reserved);
      ++outcome.reserved_changes;
      series.add(index, last_reserved);
    }
    if (after_each) after_each(*policy);
  }
  PolicyStats stats;
  policy->report(stats);
  outcome.peak_allocated_bytes = stats.allocated_bytes[0].peak;
  outcome.peak_active_bytes = stats.active_bytes[0].peak;
  outcome.retries = stats.retries;
  outcome.device_allocations = source.allocations;
  outcome.device_frees = source.frees;
  outcome.reserved_series_fnv1a64 = series.hex();
  outcome.placement_hash = placement.hex();
  outcome.end_reserved_bytes = source.reserved_bytes;
  return outcome;
}

}  // namespace tenon::test
