// ObservedPool: a driver's pool with the host's counter around it. Its calls are the driver's own business; what is
// counted is how much of the device it has.
#pragma once

#include <tenon/memory/driver_pool.h>
#include <tenon/memory/sources/observed_source.h>

#include <cstddef>
#include <memory>
#include <mutex>

namespace tenon {

class ObservedPool final : public DriverPool {
 public:
  /// `source` counts, and outlives this.
  ObservedPool(std::unique_ptr<DriverPool> pool, ObservedSource& source);
  ~ObservedPool() override;

  /// Null also beyond the source's limit. The driver knows none, so it may pass it until this returns.
  void* acquire(std::size_t bytes, StreamRef stream) override;
  void release(void* address, std::size_t bytes, std::span<const StreamRef> streams) noexcept override;
  std::size_t reserved_bytes() const noexcept override { return pool_->reserved_bytes(); }
  void trim(std::size_t keep_bytes) noexcept override;

 private:
  bool fits_locked();

  ObservedSource& source_;
  std::mutex mutex_;  // guards what follows; held over calls of the pool that change what it has
  std::unique_ptr<DriverPool> pool_;
  std::size_t reserved_bytes_ = 0;  ///< that the source has counted
};

}  // namespace tenon
