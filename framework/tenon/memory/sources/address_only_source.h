// AddressOnlySource: a device of any capacity that has addresses and no bytes. What a replay and the tests of a policy
// run on.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/units.h>
#include <tenon/memory/memory_source.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace tenon {

/// Addresses rise from call to call; what was released is given again to the next acquire of the same size, last one
/// first. Two runs with equal decisions see equal addresses, and PyTorch 1.13, which breaks ties by address, decides as
/// it did on the device that its recorded outcomes come from. Virtual memory is bookkeeping. Thread-safe.
class TENON_EXPORT AddressOnlySource final : public MemorySource {
 public:
  struct Config {
    std::string device = "address-only";
    std::size_t capacity_bytes = 0;         ///< 0 = unlimited
    std::size_t acquire_granularity = 512;  ///< a multiple of 512
    std::size_t page_bytes = 2 * MiB;       ///< of virtual memory
    /// false: every ticket is reached at once. true: tickets wait for complete().
    bool manual_completion = false;
  };

  TENON_API AddressOnlySource();
  TENON_API explicit AddressOnlySource(Config config);
  TENON_API ~AddressOnlySource() override;

  TENON_API SourceTraits traits() const override;
  TENON_API SourceUsage usage() const override;

  TENON_API void* acquire(std::size_t bytes) override;
  TENON_API void release(void* address, std::size_t bytes) noexcept override;
  TENON_API void* reserve(std::size_t bytes) override;
  TENON_API void unreserve(void* address, std::size_t bytes) noexcept override;
  TENON_API Physical create(std::size_t bytes) override;
  TENON_API void destroy(Physical physical, std::size_t bytes) noexcept override;
  TENON_API void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override;
  TENON_API void unmap(void* address, std::size_t bytes) noexcept override;

  TENON_API Ticket mark(StreamRef stream) override;
  TENON_API bool reached(Ticket ticket) override;
  /// Completes what it waits for: nothing else could.
  TENON_API void wait(Ticket ticket) override;
  TENON_API void synchronize() override;

  /// With manual completion: the stream has done everything marked so far, respectively up to that ticket.
  TENON_API void complete(StreamRef stream);
  TENON_API void complete(Ticket ticket);

  std::size_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  std::size_t reserved_address_bytes() const { return address_space_.load(std::memory_order_relaxed); }

 private:
  bool take(std::size_t bytes);

  const Config config_;
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> address_space_{0};
  std::atomic<std::uintptr_t> next_address_;
  std::atomic<std::uint64_t> next_physical_{1};
  std::atomic<std::uint64_t> next_ticket_{1};
  std::mutex released_mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> released_;  // by size

  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> completed_;  // stream -> highest ticket reached
  std::uint64_t completed_everywhere_ = 0;            // what synchronize() reached, on any stream
};

}  // namespace tenon
