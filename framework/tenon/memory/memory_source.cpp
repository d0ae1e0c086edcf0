// Defaults of the memory source: no virtual memory, and nobody who watches address ranges.
#include <tenon/core/error.h>
#include <tenon/memory/address_range_watcher.h>
#include <tenon/memory/driver_pool.h>
#include <tenon/memory/memory_source.h>
#include <tenon/memory/pytorch/conf.h>

#include <fmt/format.h>

namespace tenon {

namespace {

[[noreturn]] void no_virtual_memory(const MemorySource& source) {
  throw Error(fmt::format("{} has no virtual memory: use an allocator that needs none, such as '{}'",
                          source.traits().device, kNativeAllocator));
}

}  // namespace

MemorySource::~MemorySource() = default;
AddressRangeWatcher::~AddressRangeWatcher() = default;

void* MemorySource::reserve(std::size_t) { no_virtual_memory(*this); }
void MemorySource::unreserve(void*, std::size_t) noexcept {}
Physical MemorySource::create(std::size_t) { no_virtual_memory(*this); }
void MemorySource::destroy(Physical, std::size_t) noexcept {}
void MemorySource::map(void*, std::size_t, Physical, std::size_t) { no_virtual_memory(*this); }
void MemorySource::unmap(void*, std::size_t) noexcept {}
AddressRangeWatcher* MemorySource::address_range_watcher() { return nullptr; }

std::unique_ptr<DriverPool> MemorySource::make_driver_pool(const DriverPoolOptions&) { return nullptr; }

DriverPool::~DriverPool() = default;

}  // namespace tenon
