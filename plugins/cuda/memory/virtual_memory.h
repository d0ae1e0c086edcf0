// Virtual memory of a device by cuMem*.
//
// Note [A handle a page]: cuMemMap's offset must be zero, while MemorySource::map takes any part of a physical memory.
// So a physical memory is a row of handles, one for each page, and a part of it is some of them. Access is given once
// for a whole range, to the device itself and to those it shares its memory with.
#pragma once

#include "context.h"

#include <tenon/memory/memory_source.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace tenon::cuda {

class VirtualMemory {
 public:
  explicit VirtualMemory(const Context& context);
  VirtualMemory(const VirtualMemory&) = delete;
  VirtualMemory& operator=(const VirtualMemory&) = delete;

  /// 0: the driver or the device has no virtual memory, and nothing below may be called.
  std::size_t page_bytes() const { return page_bytes_; }

  void* reserve(std::size_t bytes);
  void unreserve(void* address, std::size_t bytes) noexcept;
  Physical create(std::size_t bytes);
  void destroy(Physical physical) noexcept;
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset);
  void unmap(void* address, std::size_t bytes) noexcept;

  /// `device` too may read and write what is mapped, and what will be.
  void share_with(int device);

 private:
  void give_access_locked(CUdeviceptr address, std::size_t bytes);
  void forget_locked(CUdeviceptr begin, CUdeviceptr end) noexcept;
  void unmap_pages(CUdeviceptr address, std::size_t count) noexcept;

  const Context& context_;
  std::size_t page_bytes_ = 0;
  std::mutex mutex_;  // guards what follows; held while access is given, so that no range goes away meanwhile
  std::map<CUdeviceptr, std::size_t> mapped_;
  std::vector<CUmemAccessDesc> access_;
};

}  // namespace tenon::cuda
