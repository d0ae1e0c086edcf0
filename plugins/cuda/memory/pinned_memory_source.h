// Page-locked host memory. Its tickets are those of the device that copies from and to it.
#pragma once

#include "memory/memory_source.h"

#include <cstddef>

namespace tenon::cuda {

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
