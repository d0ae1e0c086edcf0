// DriverPool: memory that the device's own driver pools and hands out in the order of streams (cudaMallocAsync).
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stream_ref.h>

#include <cstddef>
#include <span>

namespace tenon {

/// What the driver may do with what was given back, by CUDA's names (cudaMemPoolAttr) and with its defaults.
struct DriverPoolOptions {
  std::size_t release_threshold = 0;  ///< bytes that stay reserved when a stream, an event or the device is waited for
  bool reuse_follow_event_dependencies = true;
  bool reuse_allow_opportunistic = true;
  bool reuse_allow_internal_dependencies = true;
};

/// All calls may come from any thread. What is out when the pool is destroyed has been given back before.
class TENON_EXPORT DriverPool {
 public:
  DriverPool() = default;
  DriverPool(const DriverPool&) = delete;
  DriverPool& operator=(const DriverPool&) = delete;
  virtual ~DriverPool();

  /// `bytes` of memory, aligned to at least 512, for work that is queued on `stream` from now on; null where the device
  /// has no more. Throws Error while that stream is captured.
  virtual void* acquire(std::size_t bytes, StreamRef stream) = 0;
  /// Takes back what acquire gave. Work that is queued so far on any of `streams`, at least one, may still use it.
  virtual void release(void* address, std::size_t bytes, std::span<const StreamRef> streams) noexcept = 0;

  /// What the pool has of the device, in bytes: in use, still used by a stream, or cached. Of a lost device, what it
  /// was.
  virtual std::size_t reserved_bytes() const noexcept = 0;
  /// Gives back what no stream uses any more, until at most `keep_bytes` are reserved.
  virtual void trim(std::size_t keep_bytes) noexcept = 0;
};

}  // namespace tenon
