// AddressOnlySource: a rising address, a capacity, and tickets that complete at once or when told to.
#include <tenon/core/error.h>
#include <tenon/memory/sources/address_only_source.h>

#include <algorithm>

namespace tenon {

namespace {

// Above every address that a host process has, so that a dereference by mistake faults.
constexpr std::uintptr_t kFirstAddress = std::uintptr_t{1} << 52;

}  // namespace

AddressOnlySource::AddressOnlySource() : AddressOnlySource(Config{}) {}

AddressOnlySource::AddressOnlySource(Config config)
    : config_(std::move(config)),
      limit_(config_.capacity_bytes ? config_.capacity_bytes : std::numeric_limits<std::size_t>::max() / 2),
      next_address_(kFirstAddress) {
  if (config_.acquire_granularity == 0 || config_.acquire_granularity % 512 != 0)
    throw Error(config_.device + ": acquire_granularity must be a multiple of 512, not " +
                std::to_string(config_.acquire_granularity));
}

AddressOnlySource::~AddressOnlySource() = default;

SourceTraits AddressOnlySource::traits() const {
  return {.device = config_.device,
          .capacity_bytes = config_.capacity_bytes,
          .acquire_granularity = config_.acquire_granularity,
          .page_bytes = config_.page_bytes,
          .virtual_memory = config_.page_bytes != 0,
          .host_accessible = false};
}

SourceUsage AddressOnlySource::usage() const {
  const std::size_t used = used_bytes();
  return {.free_bytes = limit_ - std::min(limit_, used), .total_bytes = config_.capacity_bytes};
}

bool AddressOnlySource::take(std::size_t bytes) {
  std::size_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void* AddressOnlySource::acquire(std::size_t bytes) {
  if (bytes > limit_) return nullptr;
  const std::size_t rounded = align_up(bytes, config_.acquire_granularity);
  if (!take(rounded)) return nullptr;
  {
    std::lock_guard lock(released_mutex_);
    if (const auto it = released_.find(rounded); it != released_.end() && !it->second.empty()) {
      void* address = it->second.back();
      it->second.pop_back();
      return address;
    }
  }
  return reinterpret_cast<void*>(next_address_.fetch_add(rounded, std::memory_order_relaxed));
}

void AddressOnlySource::release(void* address, std::size_t bytes) noexcept {
  const std::size_t rounded = align_up(bytes, config_.acquire_granularity);
  used_.fetch_sub(rounded, std::memory_order_relaxed);
  std::lock_guard lock(released_mutex_);
  released_[rounded].push_back(address);
}

void* AddressOnlySource::reserve(std::size_t bytes) {
  if (config_.page_bytes == 0) return MemorySource::reserve(bytes);
  // Page-aligned whatever acquire handed out before.
  std::uintptr_t address = next_address_.load(std::memory_order_relaxed);
  std::uintptr_t start;
  do {
    start = align_up(address, config_.page_bytes);
  } while (!next_address_.compare_exchange_weak(address, start + bytes, std::memory_order_relaxed));
  address_space_.fetch_add(bytes, std::memory_order_relaxed);
  return reinterpret_cast<void*>(start);
}

void AddressOnlySource::unreserve(void*, std::size_t bytes) noexcept {
  address_space_.fetch_sub(bytes, std::memory_order_relaxed);
}

Physical AddressOnlySource::create(std::size_t bytes) {
  if (config_.page_bytes == 0) return MemorySource::create(bytes);
  if (bytes == 0 || bytes % config_.page_bytes != 0)
    throw Error(config_.device + ": create needs a multiple of the page of " + format_bytes(config_.page_bytes) +
                ", not " + std::to_string(bytes) + " bytes");
  if (!take(bytes)) return {};
  return {next_physical_.fetch_add(1, std::memory_order_relaxed)};
}

void AddressOnlySource::destroy(Physical, std::size_t bytes) noexcept {
  used_.fetch_sub(bytes, std::memory_order_relaxed);
}

void AddressOnlySource::map(void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  if (config_.page_bytes == 0) return MemorySource::map(address, bytes, physical, offset);
  if (reinterpret_cast<std::uintptr_t>(address) % config_.page_bytes != 0 || bytes % config_.page_bytes != 0 ||
      offset % config_.page_bytes != 0 || !physical)
    throw Error(config_.device + ": map needs physical memory, and address, size and offset in whole pages of " +
                format_bytes(config_.page_bytes));
}

void AddressOnlySource::unmap(void*, std::size_t) noexcept {}

Ticket AddressOnlySource::mark(StreamRef stream) {
  return {stream.id, next_ticket_.fetch_add(1, std::memory_order_relaxed)};
}

bool AddressOnlySource::reached(Ticket ticket) {
  if (!config_.manual_completion) return true;
  std::lock_guard lock(mutex_);
  if (ticket.value <= completed_everywhere_) return true;
  const auto it = completed_.find(ticket.stream);
  return it != completed_.end() && ticket.value <= it->second;
}

void AddressOnlySource::wait(Ticket ticket) { complete(ticket); }

void AddressOnlySource::synchronize() {
  if (!config_.manual_completion) return;
  std::lock_guard lock(mutex_);
  completed_everywhere_ = next_ticket_.load(std::memory_order_relaxed) - 1;
}

void AddressOnlySource::complete(StreamRef stream) {
  complete(Ticket{stream.id, next_ticket_.load(std::memory_order_relaxed) - 1});
}

void AddressOnlySource::complete(Ticket ticket) {
  if (!config_.manual_completion) return;
  std::lock_guard lock(mutex_);
  std::uint64_t& value = completed_[ticket.stream];
  value = std::max(value, ticket.value);
}

}  // namespace tenon
