// The CUDA device as a memory source: cudaMalloc, cuMem* virtual memory, and stream order through events.
#pragma once

#include "timeline.h"

#include <tenon/memory/memory_source.h>

#include <atomic>
#include <cstddef>

namespace tenon::cuda {

class CudaMemorySource final : public MemorySource {
 public:
  /// capacity_bytes below the device's memory makes it a smaller device; 0 = all of it.
  CudaMemorySource(int device, std::size_t capacity_bytes);

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

 private:
  bool charge(std::size_t bytes) noexcept;
  void refund(std::size_t bytes) noexcept { used_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  const int device_;
  std::size_t capacity_bytes_;
  std::size_t page_bytes_ = 0;  // 0: the driver or the device has no virtual memory
  std::atomic<std::size_t> used_bytes_{0};
  Timeline timeline_;
};

/// Page-locked host memory. Its tickets are those of the device that copies from and to it.
class PinnedMemorySource final : public MemorySource {
 public:
  explicit PinnedMemorySource(CudaMemorySource& device_memory) : device_memory_(device_memory) {}

  SourceTraits traits() const override;
  SourceUsage usage() const override;
  void* acquire(std::size_t bytes) override;
  void release(void* address, std::size_t bytes) noexcept override;
  Ticket mark(StreamRef stream) override { return device_memory_.mark(stream); }
  bool reached(Ticket ticket) override { return device_memory_.reached(ticket); }
  void wait(Ticket ticket) override { device_memory_.wait(ticket); }
  void synchronize() override { device_memory_.synchronize(); }

 private:
  CudaMemorySource& device_memory_;
};

}  // namespace tenon::cuda
