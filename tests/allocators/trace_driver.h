// A small driver for recorded memory histories: reads the text form, plays it on a policy, and says what the policy
// did.
#pragma once

#include <tenon/memory/allocator.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {

struct TraceEvent {
  char kind;  ///< 'a', 'f', 'u', 'e'
  std::uint32_t id = 0;
  std::size_t bytes = 0;
  std::uint64_t stream = 0;
};

struct Trace {
  std::vector<TraceEvent> events;
  std::uint32_t ids = 0;
};

/// Throws std::runtime_error when the file cannot be read. Reads .gz too.
Trace read_trace(const std::string& path);

/// Counts what a policy takes from the device.
class CountingSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  void* acquire(std::size_t bytes) override;
  void release(void* address, std::size_t bytes) noexcept override;
  Physical create(std::size_t bytes) override;
  void destroy(Physical physical, std::size_t bytes) noexcept override;

  void* reserve(std::size_t bytes) override;

  /// The how manieth segment or address range of the device, from 0, and how far in it.
  std::pair<std::uint64_t, std::uint64_t> place_of(const void* address) const;

  std::size_t reserved_bytes = 0;
  std::size_t allocations = 0;
  std::size_t frees = 0;

 private:
  std::map<std::uintptr_t, std::uint64_t> ordinals_;  ///< an address may be given again
  std::uint64_t next_ordinal_ = 0;
};

struct Outcome {
  std::size_t peak_requested_bytes = 0;  ///< of the history, what could not be served included
  std::int64_t peak_allocated_bytes = 0;
  std::int64_t peak_active_bytes = 0;
  std::size_t peak_reserved_bytes = 0;
  std::size_t device_allocations = 0;
  std::size_t device_frees = 0;
  std::int64_t retries = 0;
  std::size_t ooms = 0;
  std::optional<std::size_t> first_oom_event;
  std::size_t reserved_changes = 0;
  std::string reserved_series_fnv1a64;
  std::string placement_hash;  ///< as in the files of PyTorch 2.15: (event, segment, offset) of each request served
  std::size_t end_reserved_bytes = 0;
};

using MakeAllocator = std::function<std::unique_ptr<Allocator>(MemorySource&)>;

/// `after_each`, where given, is called with the policy after every event.
Outcome play(const Trace& trace, std::size_t capacity_bytes, const MakeAllocator& make,
             const std::function<void(Allocator&)>& after_each = {});

}  // namespace tenon::test
