// The CUDA device as a memory source: cudaMalloc, cuMem* virtual memory, and stream order through events.
#pragma once

#include "context.h"
#include "memory/virtual_memory.h"
#include "timeline.h"

#include <tenon/memory/memory_source.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace tenon::cuda {

class CudaDriverPool;

class CudaMemorySource final : public MemorySource {
 public:
  /// capacity_bytes below the device's memory makes it a smaller device; 0 = all of it. `context` must outlive this.
  CudaMemorySource(const Context& context, std::size_t capacity_bytes);

  SourceTraits traits() const override;
  SourceUsage usage() const override;

  void* acquire(std::size_t bytes) override;
  void release(void* address, std::size_t bytes) noexcept override;

  void* reserve(std::size_t bytes) override;
  void unreserve(void* address, std::size_t bytes) noexcept override;
  Physical create(std::size_t bytes) override;
  void destroy(Physical physical, std::size_t bytes) noexcept override;
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override;
  void unmap(void* address, std::size_t bytes) noexcept override;

  Ticket mark(StreamRef stream) override { return timeline_.mark(stream); }
  bool reached(Ticket ticket) override { return timeline_.reached(ticket); }
  void wait(Ticket ticket) override { timeline_.wait(ticket); }
  void synchronize() override;
  std::unique_ptr<DriverPool> make_driver_pool(const DriverPoolOptions& options) override;

  const Context& context() const { return context_; }
  Timeline& timeline() { return timeline_; }
  /// Captures of this device that are under way: nothing may wait for it meanwhile.
  std::atomic<int>& captures() { return captures_; }
  void share_with(int device);

  /// Whether the capacity has room for `bytes` more, and then counts them.
  bool charge(std::size_t bytes) noexcept;
  void refund(std::size_t bytes) noexcept { used_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  /// A pool of this device that is shared with whom the rest is.
  void add(CudaDriverPool& pool);
  void remove(CudaDriverPool& pool) noexcept;

 private:
  bool has_virtual_memory() const { return virtual_.page_bytes() != 0; }

  const Context& context_;
  std::size_t capacity_bytes_;
  std::atomic<std::size_t> used_bytes_{0};
  std::atomic<int> captures_{0};
  VirtualMemory virtual_;
  Timeline timeline_;
  std::mutex mutex_;  // guards what follows
  std::vector<CudaDriverPool*> pools_;
  std::vector<int> shared_with_;
};

}  // namespace tenon::cuda
