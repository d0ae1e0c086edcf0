// HostMemorySource: the host's memory as a device's: real memory, real virtual memory, streams that have always caught
// up. The cpu backend is made of it, and so is whatever is simulated on the host.
//
// Physical memory without an address is an extent of one memfd, which grows and is never reused: file offsets are
// plentiful, punching a hole gives the pages back, and no number of extents runs the process out of file descriptors.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/memory_source.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

namespace tenon {

struct HostMemoryConfig {
  std::string device = "cpu";      ///< for messages
  std::size_t capacity_bytes = 0;  ///< 0 = unlimited: as much as the machine gives
  std::size_t page_bytes =
      std::size_t{2} * 1024 * 1024;  ///< granularity of create and map, a multiple of the system's page
};

class TENON_EXPORT HostMemorySource final : public MemorySource {
 public:
  /// Throws ConfigError when page_bytes is not a multiple of the system's page.
  TENON_API explicit HostMemorySource(HostMemoryConfig config);
  TENON_API ~HostMemorySource() override;

  TENON_API SourceTraits traits() const override;
  /// With a capacity: against it. Without: the machine's memory and what the kernel calls available.
  TENON_API SourceUsage usage() const override;

  TENON_API void* acquire(std::size_t bytes) override;
  TENON_API void release(void* address, std::size_t bytes) noexcept override;

  TENON_API void* reserve(std::size_t bytes) override;
  TENON_API void unreserve(void* address, std::size_t bytes) noexcept override;
  TENON_API Physical create(std::size_t bytes) override;
  /// The extent must be unmapped everywhere.
  TENON_API void destroy(Physical physical, std::size_t bytes) noexcept override;
  TENON_API void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override;
  TENON_API void unmap(void* address, std::size_t bytes) noexcept override;

  Ticket mark(StreamRef stream) override { return {.stream = stream.id, .value = 0}; }
  bool reached(Ticket) override { return true; }
  void wait(Ticket) override {}
  void synchronize() override {}

  /// Bytes acquired and created and not yet given back, after rounding.
  std::size_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

 private:
  bool charge(std::size_t bytes) noexcept;
  void refund(std::size_t bytes) noexcept { used_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  const HostMemoryConfig config_;
  std::atomic<std::size_t> used_bytes_{0};

  std::mutex mutex_;  // guards what follows
  int file_ = -1;
  std::size_t next_offset_ = 0;
  std::size_t file_bytes_ = 0;
};

}  // namespace tenon
