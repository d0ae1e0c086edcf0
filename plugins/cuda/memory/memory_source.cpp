// The CUDA device as a memory source.
#include "memory/memory_source.h"

#include "memory/driver_pool.h"

#include <tenon/core/units.h>

#include <algorithm>
#include <string>

namespace tenon::cuda {

namespace {

// What cudaMalloc's addresses are aligned to at least, by CUDA's documentation.
constexpr std::size_t kGranularityBytes = 512;

SourceUsage device_memory(const Context& context) {
  const ContextGuard guard(context);
  SourceUsage usage;
  check(cudaMemGetInfo(&usage.free_bytes, &usage.total_bytes), "cudaMemGetInfo");
  return usage;
}

}  // namespace

CudaMemorySource::CudaMemorySource(const Context& context, std::size_t capacity_bytes)
    : context_(context), capacity_bytes_(device_memory(context).total_bytes), virtual_(context), timeline_(context) {
  if (capacity_bytes != 0) capacity_bytes_ = std::min(capacity_bytes_, capacity_bytes);
}

SourceTraits CudaMemorySource::traits() const {
  return {.device = "cuda:" + std::to_string(context_.device()),
          .capacity_bytes = capacity_bytes_,
          .acquire_granularity = kGranularityBytes,
          .page_bytes = virtual_.page_bytes(),
          .virtual_memory = has_virtual_memory(),
          .host_accessible = false};
}

SourceUsage CudaMemorySource::usage() const {
  const std::size_t used = used_bytes_.load(std::memory_order_relaxed);
  const std::size_t left = used < capacity_bytes_ ? capacity_bytes_ - used : 0;
  return {.free_bytes = std::min(device_memory(context_).free_bytes, left), .total_bytes = capacity_bytes_};
}

bool CudaMemorySource::charge(std::size_t bytes) noexcept {
  std::size_t used = used_bytes_.load(std::memory_order_relaxed);
  do {
    if (used > capacity_bytes_ || bytes > capacity_bytes_ - used) return false;
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void* CudaMemorySource::acquire(std::size_t bytes) {
  if (bytes == 0 || !charge(bytes)) return nullptr;
  const ContextGuard guard(context_);
  const WhileCapturing allowed;
  void* address = nullptr;
  const cudaError_t status = cudaMalloc(&address, bytes);
  if (status == cudaSuccess) return address;
  refund(bytes);
  if (status != cudaErrorMemoryAllocation) check(status, "cudaMalloc");
  cudaGetLastError();
  return nullptr;
}

void CudaMemorySource::release(void* address, std::size_t bytes) noexcept {
  if (address == nullptr) return;
  const ContextGuard guard(context_.native(), std::nothrow);
  const WhileCapturing allowed;
  if (guard) cudaFree(address);
  cudaGetLastError();
  refund(bytes);
}

void* CudaMemorySource::reserve(std::size_t bytes) {
  return has_virtual_memory() ? virtual_.reserve(bytes) : MemorySource::reserve(bytes);
}

void CudaMemorySource::unreserve(void* address, std::size_t bytes) noexcept { virtual_.unreserve(address, bytes); }

Physical CudaMemorySource::create(std::size_t bytes) {
  if (!has_virtual_memory()) return MemorySource::create(bytes);
  if (bytes == 0 || bytes % virtual_.page_bytes() != 0) {
    throw Error(traits().device + ": physical memory comes in multiples of " +
                format_size_exact(virtual_.page_bytes()) + ", not " + format_size_exact(bytes));
  }
  if (!charge(bytes)) return {};
  try {
    const Physical physical = virtual_.create(bytes);
    if (!physical) refund(bytes);
    return physical;
  } catch (...) {
    refund(bytes);
    throw;
  }
}

void CudaMemorySource::destroy(Physical physical, std::size_t bytes) noexcept {
  if (!physical) return;
  virtual_.destroy(physical);
  refund(bytes);
}

void CudaMemorySource::map(void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  if (!has_virtual_memory()) return MemorySource::map(address, bytes, physical, offset);
  virtual_.map(address, bytes, physical, offset);
}

void CudaMemorySource::unmap(void* address, std::size_t bytes) noexcept {
  if (has_virtual_memory()) virtual_.unmap(address, bytes);
}

void CudaMemorySource::synchronize() {
  if (captures_.load(std::memory_order_relaxed) != 0) {
    throw Error(traits().device + " cannot be waited for while work is captured; end the capture first");
  }
  const ContextGuard guard(context_);
  // What other threads queue during the wait is not waited for: their tickets are newer.
  const std::uint64_t before = timeline_.newest();
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  timeline_.reached_until(before);
}

std::unique_ptr<DriverPool> CudaMemorySource::make_driver_pool(const DriverPoolOptions& options) {
  return CudaDriverPool::make(*this, options);
}

void CudaMemorySource::add(CudaDriverPool& pool) {
  const std::lock_guard lock(mutex_);
  for (const int device : shared_with_) pool.share_with(device);
  pools_.push_back(&pool);
}

void CudaMemorySource::remove(CudaDriverPool& pool) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(pools_, &pool);
}

void CudaMemorySource::share_with(int device) {
  if (has_virtual_memory()) virtual_.share_with(device);
  const std::lock_guard lock(mutex_);
  if (std::find(shared_with_.begin(), shared_with_.end(), device) != shared_with_.end()) return;
  for (CudaDriverPool* pool : pools_) pool->share_with(device);
  shared_with_.push_back(device);
}

}  // namespace tenon::cuda
