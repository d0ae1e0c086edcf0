// OnDriver: driver_async where the device's driver has a pool. Each request goes to it in the order of its stream; what
// is kept here is who else uses a block, which the driver is not told.
#pragma once

#include "private_pools.h"

#include <tenon/memory/allocator.h>
#include <tenon/memory/driver_pool.h>
#include <tenon/memory/memory_source.h>

#include <memory>
#include <mutex>
#include <vector>

namespace tenon::driver_async {

inline constexpr std::size_t kUnit = 512;  ///< sizes are rounded up to it

class OnDriver final : public Allocator {
 public:
  OnDriver(MemorySource& source, std::unique_ptr<DriverPool> pool, PrivatePools::Make make_private);
  ~OnDriver() override;

  Block allocate(const Request& request) override;
  void deallocate(const Block& block, StreamRef last_use) noexcept override;
  void record_use(const Block& block, StreamRef stream) override;
  std::size_t trim(std::size_t keep_bytes) override;
  /// Each block as a segment: where the pool's own ones are, the driver does not say.
  void walk(SegmentVisitor& visitor) const override;
  void report(PolicyStats& stats) const override;
  void check_invariants() const override;
  bool is_thread_safe() const override { return true; }
  void begin_pool(std::uint64_t pool, StreamRef stream) override;
  void end_pool(std::uint64_t pool) override;
  void release_pool(std::uint64_t pool) override;

 private:
  struct Record {
    void* address = nullptr;
    std::size_t bytes = 0;
    std::size_t requested_bytes = 0;
    std::vector<StreamRef> streams;  ///< that use it: its own, then those of record_use
    Record* next = nullptr;
    Record* previous = nullptr;
  };

  void* acquire(std::size_t bytes, StreamRef stream);

  MemorySource& source_;
  const std::unique_ptr<DriverPool> pool_;
  PrivatePools private_;
  mutable std::mutex mutex_;  // guards what follows, and the streams of every record; held over no call of the driver
  Record* live_ = nullptr;
  std::size_t live_bytes_ = 0;
  std::int64_t retries_ = 0;
};

}  // namespace tenon::driver_async
