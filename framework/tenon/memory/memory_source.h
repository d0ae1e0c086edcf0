// MemorySource: the mechanism. Raw memory, virtual memory and stream order of one device; supplied by a backend plugin.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/allocator.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tenon {

struct SourceTraits {
  std::string device;                   ///< "cpu", "cuda:0": for messages
  std::size_t capacity_bytes = 0;       ///< total; 0 = unlimited
  std::size_t acquire_granularity = 1;  ///< acquire rounds up to this internally; its addresses are aligned to >= 512
  std::size_t page_bytes = 0;           ///< granularity of create/map/unmap; 0 = no virtual memory
  bool virtual_memory = false;          ///< whether reserve/create/map work
  bool host_accessible = true;          ///< whether the host may dereference the addresses
};

/// What the device has left right now (PyTorch: mem_get_info).
struct SourceUsage {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

/// Physical memory without an address (cuMemCreate, memfd). value 0 is "none".
struct Physical {
  std::uint64_t value = 0;
  explicit operator bool() const { return value != 0; }
};

/// A point in a stream's order: reached once all work queued before mark() has completed. Needs no release.
struct Ticket {
  std::uint64_t stream = 0;
  std::uint64_t value = 0;
};

class AddressRangeWatcher;
class DriverPool;
struct DriverPoolOptions;

/// All calls may come from any thread. Calls that find the device exhausted return null; any other failure throws
/// Error.
class TENON_EXPORT MemorySource {
 public:
  MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;
  virtual ~MemorySource();

  virtual SourceTraits traits() const = 0;
  virtual SourceUsage usage() const = 0;

  /// cudaMalloc: `bytes` of new memory, aligned to at least 512, or null when the device has no more.
  virtual void* acquire(std::size_t bytes) = 0;
  /// cudaFree, without its implicit synchronisation: the caller has made sure that no stream uses the memory.
  virtual void release(void* address, std::size_t bytes) noexcept = 0;

  /// Address space only, page-aligned; null when there is none left. The following throw Error without virtual memory.
  virtual void* reserve(std::size_t bytes);
  virtual void unreserve(void* address, std::size_t bytes) noexcept;
  /// Memory only, a multiple of traits().page_bytes; none when the device is exhausted.
  virtual Physical create(std::size_t bytes);
  virtual void destroy(Physical physical, std::size_t bytes) noexcept;
  /// Puts `bytes` of `physical` from `offset` on at `address`, readable and writable. One physical may be mapped at
  /// several addresses at once (stitching).
  virtual void map(void* address, std::size_t bytes, Physical physical, std::size_t offset);
  virtual void unmap(void* address, std::size_t bytes) noexcept;

  /// A ticket after all work queued on `stream` so far.
  virtual Ticket mark(StreamRef stream) = 0;
  virtual bool reached(Ticket ticket) = 0;
  /// Waits for one ticket, or for all streams of the device.
  virtual void wait(Ticket ticket) = 0;
  virtual void synchronize() = 0;

  /// Who wants to know how long reserved ranges had to be (memory/address_range_watcher.h); null: nobody does.
  virtual AddressRangeWatcher* address_range_watcher();

  /// A new pool of the device's driver (memory/driver_pool.h), which this outlives; null: the device has none.
  virtual std::unique_ptr<DriverPool> make_driver_pool(const DriverPoolOptions& options);
};

}  // namespace tenon
