// The CUDA device as a memory source.
#include "memory_source.h"

#include "driver_api.h"

#include <tenon/core/units.h>

#include <unistd.h>

#include <algorithm>

namespace tenon::cuda {

namespace {

// What cudaMalloc's addresses are aligned to at least, by CUDA's documentation.
constexpr std::size_t kGranularityBytes = 512;

std::size_t total_bytes(int device) {
  const DeviceGuard guard(device);
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return total;
}

CUmemAllocationProp allocation_properties(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

std::size_t virtual_page_bytes(int device) {
  const DriverApi& driver = driver_api();
  if (!driver.complete()) return 0;
  const CUmemAllocationProp properties = allocation_properties(device);
  std::size_t bytes = 0;
  const CUresult status = driver.get_granularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return status == CUDA_SUCCESS ? bytes : 0;
}

CUdeviceptr driver_address(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

}  // namespace

CudaMemorySource::CudaMemorySource(int device, std::size_t capacity_bytes)
    : device_(device), capacity_bytes_(total_bytes(device)), timeline_(device) {
  if (capacity_bytes != 0) capacity_bytes_ = std::min(capacity_bytes_, capacity_bytes);
  page_bytes_ = virtual_page_bytes(device);
}

SourceTraits CudaMemorySource::traits() const {
  return {.device = "cuda:" + std::to_string(device_),
          .capacity_bytes = capacity_bytes_,
          .acquire_granularity = kGranularityBytes,
          .page_bytes = page_bytes_,
          .virtual_memory = page_bytes_ != 0,
          .host_accessible = false};
}

SourceUsage CudaMemorySource::usage() const {
  const DeviceGuard guard(device_);
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const std::size_t used = used_bytes_.load(std::memory_order_relaxed);
  const std::size_t left = used < capacity_bytes_ ? capacity_bytes_ - used : 0;
  return {.free_bytes = std::min(free, left), .total_bytes = capacity_bytes_};
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
  const DeviceGuard guard(device_);
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
  cudaFree(address);
  cudaGetLastError();
  refund(bytes);
}

void* CudaMemorySource::reserve(std::size_t bytes) {
  if (page_bytes_ == 0) return MemorySource::reserve(bytes);
  CUdeviceptr address = 0;
  const CUresult status = driver_api().address_reserve(&address, align_up(bytes, page_bytes_), 0, 0, 0);
  if (status == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
  driver_api().check(status, "cuMemAddressReserve");
  return reinterpret_cast<void*>(address);
}

void CudaMemorySource::unreserve(void* address, std::size_t bytes) noexcept {
  if (address != nullptr) driver_api().address_free(driver_address(address), align_up(bytes, page_bytes_));
}

Physical CudaMemorySource::create(std::size_t bytes) {
  if (page_bytes_ == 0) return MemorySource::create(bytes);
  if (bytes == 0 || bytes % page_bytes_ != 0) {
    throw Error(traits().device + ": physical memory comes in multiples of " + format_size_exact(page_bytes_) +
                ", not " + format_size_exact(bytes));
  }
  if (!charge(bytes)) return {};
  const DeviceGuard guard(device_);
  const CUmemAllocationProp properties = allocation_properties(device_);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult status = driver_api().create(&handle, bytes, &properties, 0);
  if (status != CUDA_SUCCESS) {
    refund(bytes);
    if (status != CUDA_ERROR_OUT_OF_MEMORY) driver_api().check(status, "cuMemCreate");
    return {};
  }
  return {handle + 1};  // CUDA does not promise that no handle is 0
}

void CudaMemorySource::destroy(Physical physical, std::size_t bytes) noexcept {
  if (!physical) return;
  driver_api().release(physical.value - 1);
  refund(bytes);
}

void CudaMemorySource::map(void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  if (page_bytes_ == 0) return MemorySource::map(address, bytes, physical, offset);
  const DeviceGuard guard(device_);
  driver_api().check(driver_api().map(driver_address(address), bytes, offset, physical.value - 1, 0), "cuMemMap");
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUresult status = driver_api().set_access(driver_address(address), bytes, &access, 1);
  if (status != CUDA_SUCCESS) {
    driver_api().unmap(driver_address(address), bytes);
    driver_api().check(status, "cuMemSetAccess");
  }
}

void CudaMemorySource::unmap(void* address, std::size_t bytes) noexcept {
  if (page_bytes_ != 0) driver_api().unmap(driver_address(address), bytes);
}

void CudaMemorySource::synchronize() {
  const DeviceGuard guard(device_);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  timeline_.all_reached();
}

SourceTraits PinnedMemorySource::traits() const {
  return {.device = "pinned host memory of " + device_memory_.traits().device,
          .acquire_granularity = kGranularityBytes,
          .host_accessible = true};
}

SourceUsage PinnedMemorySource::usage() const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return {.free_bytes = static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * page,
          .total_bytes = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * page};
}

void* PinnedMemorySource::acquire(std::size_t bytes) {
  void* address = nullptr;
  const cudaError_t status = cudaHostAlloc(&address, align_up(bytes, kGranularityBytes), cudaHostAllocPortable);
  if (status == cudaSuccess) return address;
  if (status != cudaErrorMemoryAllocation) check(status, "cudaHostAlloc");
  cudaGetLastError();
  return nullptr;
}

void PinnedMemorySource::release(void* address, std::size_t) noexcept {
  if (address == nullptr) return;
  cudaFreeHost(address);
  cudaGetLastError();
}

}  // namespace tenon::cuda
