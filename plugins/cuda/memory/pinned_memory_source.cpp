// Page-locked host memory by cudaHostAlloc.
#include "memory/pinned_memory_source.h"

#include <tenon/core/units.h>

#include <unistd.h>

namespace tenon::cuda {

namespace {

constexpr std::size_t kPinnedGranularityBytes = 512;

}  // namespace

SourceTraits PinnedMemorySource::traits() const {
  return {.device = "pinned host memory of " + device_memory_.traits().device,
          .acquire_granularity = kPinnedGranularityBytes,
          .host_accessible = true};
}

SourceUsage PinnedMemorySource::usage() const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return {.free_bytes = static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * page,
          .total_bytes = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * page};
}

void* PinnedMemorySource::acquire(std::size_t bytes) {
  const ContextGuard guard(device_memory_.context());
  const WhileCapturing allowed;
  void* address = nullptr;
  const cudaError_t status = cudaHostAlloc(&address, align_up(bytes, kPinnedGranularityBytes), cudaHostAllocPortable);
  if (status == cudaSuccess) return address;
  if (status != cudaErrorMemoryAllocation) check(status, "cudaHostAlloc");
  cudaGetLastError();
  return nullptr;
}

void PinnedMemorySource::release(void* address, std::size_t) noexcept {
  if (address == nullptr) return;
  const ContextGuard guard(device_memory_.context().native(), std::nothrow);
  const WhileCapturing allowed;
  if (guard) cudaFreeHost(address);
  cudaGetLastError();
}

}  // namespace tenon::cuda
