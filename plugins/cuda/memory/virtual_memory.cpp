// Virtual memory of a device: a handle a page, access by range.
#include "memory/virtual_memory.h"

#include <tenon/core/units.h>

#include <memory>

namespace tenon::cuda {

namespace {

/// What a Physical's value points to.
struct Pages {
  std::vector<CUmemGenericAllocationHandle> handles;
  ~Pages() {
    for (const CUmemGenericAllocationHandle handle : handles) driver_api().release(handle);
  }
};

Pages* pages_of(Physical physical) { return reinterpret_cast<Pages*>(physical.value); }
CUdeviceptr driver_address(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

CUmemAllocationProp properties_of(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

CUmemAccessDesc access_of(int device) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

}  // namespace

VirtualMemory::VirtualMemory(const Context& context) : context_(context), access_{access_of(context.device())} {
  const DriverApi& driver = driver_api();
  if (!driver.has_virtual_memory()) return;
  const ContextGuard guard(context_);
  const CUmemAllocationProp properties = properties_of(context.device());
  std::size_t bytes = 0;
  if (driver.get_granularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS)
    page_bytes_ = bytes;
}

void* VirtualMemory::reserve(std::size_t bytes) {
  CUdeviceptr address = 0;
  const CUresult status = driver_api().address_reserve(&address, align_up(bytes, page_bytes_), 0, 0, 0);
  if (status == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
  driver_api().check(status, "cuMemAddressReserve");
  return reinterpret_cast<void*>(address);
}

void VirtualMemory::unreserve(void* address, std::size_t bytes) noexcept {
  if (address != nullptr) driver_api().address_free(driver_address(address), align_up(bytes, page_bytes_));
}

Physical VirtualMemory::create(std::size_t bytes) {
  const ContextGuard guard(context_);
  const WhileCapturing allowed;
  const CUmemAllocationProp properties = properties_of(context_.device());
  auto pages = std::make_unique<Pages>();
  pages->handles.reserve(bytes / page_bytes_);
  while (pages->handles.size() < bytes / page_bytes_) {
    CUmemGenericAllocationHandle handle = 0;
    const CUresult status = driver_api().create(&handle, page_bytes_, &properties, 0);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) return {};
    driver_api().check(status, "cuMemCreate");
    pages->handles.push_back(handle);
  }
  return {reinterpret_cast<std::uint64_t>(pages.release())};
}

void VirtualMemory::destroy(Physical physical) noexcept { delete pages_of(physical); }

void VirtualMemory::give_access_locked(CUdeviceptr address, std::size_t bytes) {
  driver_api().check(driver_api().set_access(address, bytes, access_.data(), access_.size()), "cuMemSetAccess");
}

void VirtualMemory::unmap_pages(CUdeviceptr address, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) driver_api().unmap(address + i * page_bytes_, page_bytes_);
}

void VirtualMemory::map(void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  const ContextGuard guard(context_);
  const WhileCapturing allowed;
  const auto& handles = pages_of(physical)->handles;
  const CUdeviceptr base = driver_address(address);
  const std::size_t first = offset / page_bytes_;
  const std::size_t count = bytes / page_bytes_;
  if (offset % page_bytes_ != 0 || bytes % page_bytes_ != 0 || first > handles.size() ||
      count > handles.size() - first) {
    throw Error("cuda: cannot map " + format_size_exact(bytes) + " from " + format_size_exact(offset) + " on of " +
                format_size_exact(handles.size() * page_bytes_) + " in pages of " + format_size_exact(page_bytes_));
  }
  std::size_t mapped = 0;
  try {
    for (; mapped < count; ++mapped) {
      driver_api().check(driver_api().map(base + mapped * page_bytes_, page_bytes_, 0, handles[first + mapped], 0),
                         "cuMemMap");
    }
    const std::lock_guard lock(mutex_);
    give_access_locked(base, bytes);
    mapped_.insert_or_assign(base, bytes);
  } catch (...) {
    unmap_pages(base, mapped);
    throw;
  }
}

void VirtualMemory::forget_locked(CUdeviceptr begin, CUdeviceptr end) noexcept {
  auto at = mapped_.upper_bound(begin);
  if (at != mapped_.begin()) --at;
  while (at != mapped_.end() && at->first < end) {
    const auto [address, bytes] = *at;
    const CUdeviceptr its_end = address + bytes;
    if (its_end <= begin) {
      ++at;
      continue;
    }
    at = mapped_.erase(at);
    if (address < begin) mapped_.emplace(address, begin - address);
    if (its_end > end) at = mapped_.emplace(end, its_end - end).first;
  }
}

void VirtualMemory::unmap(void* address, std::size_t bytes) noexcept {
  const CUdeviceptr base = driver_address(address);
  {
    const std::lock_guard lock(mutex_);
    forget_locked(base, base + bytes);
  }
  unmap_pages(base, bytes / page_bytes_);
}

void VirtualMemory::share_with(int device) {
  const ContextGuard guard(context_);
  const std::lock_guard lock(mutex_);
  for (const CUmemAccessDesc& access : access_) {
    if (access.location.id == device) return;
  }
  access_.push_back(access_of(device));
  for (const auto& [address, bytes] : mapped_) give_access_locked(address, bytes);
}

}  // namespace tenon::cuda
