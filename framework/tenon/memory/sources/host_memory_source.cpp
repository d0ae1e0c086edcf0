// The host as a memory source: mmap, memfd, and the bookkeeping of a capacity.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/host_memory_source.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace tenon {
namespace {

constexpr std::size_t kAlignment = 512;
// Below this the C library's heap is used: a system call and a page fault for each small tensor would hide what an
// allocator's policy costs.
constexpr std::size_t kHeapLimitBytes = MiB;
constexpr std::size_t kHugePageBytes = 2 * MiB;
constexpr std::size_t kFileStepBytes = 64 * GiB;

std::size_t system_page_bytes() {
  static const std::size_t bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t rounded(std::size_t bytes) {
  return align_up(bytes, bytes < kHeapLimitBytes ? kAlignment : system_page_bytes());
}

[[noreturn]] void fail(const std::string& device, const char* action, std::size_t bytes, int error,
                       const char* next_step) {
  throw Error(device + ": cannot " + std::string(action) + " " + format_bytes(bytes) + ": " + std::strerror(error) +
              "; " + next_step);
}

// Aligned to the size of a huge page, so that the kernel can back it with those.
void* map_anonymous(std::size_t bytes) noexcept {
  const std::size_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : system_page_bytes();
  const std::size_t slack = alignment - system_page_bytes();
  void* raw = ::mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = align_up(start, alignment);
  if (aligned > start) ::munmap(raw, aligned - start);
  if (const std::size_t tail = start + slack - aligned; tail > 0) {
    ::munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  }
  void* address = reinterpret_cast<void*>(aligned);
  if (bytes >= kHugePageBytes) ::madvise(address, bytes, MADV_HUGEPAGE);
  return address;
}

std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::size_t kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes) {
    if (key == "MemAvailable:") return kibibytes * KiB;
    std::getline(file, unit);
  }
  struct sysinfo info {};
  return ::sysinfo(&info) == 0 ? std::size_t{info.freeram} * info.mem_unit : 0;
}

std::size_t machine_bytes() {
  struct sysinfo info {};
  return ::sysinfo(&info) == 0 ? std::size_t{info.totalram} * info.mem_unit : 0;
}

}  // namespace

HostMemorySource::HostMemorySource(HostMemoryConfig config) : config_(config) {
  if (config_.page_bytes == 0 || config_.page_bytes % system_page_bytes() != 0) {
    throw ConfigError(config_.device + ": option 'page' is " + format_size_exact(config_.page_bytes) +
                      "; it must be a multiple of the system's page, " + format_size_exact(system_page_bytes()));
  }
}

HostMemorySource::~HostMemorySource() {
  if (file_ >= 0) ::close(file_);
}

SourceTraits HostMemorySource::traits() const {
  return {.device = config_.device,
          .capacity_bytes = config_.capacity_bytes,
          .acquire_granularity = kAlignment,
          .page_bytes = config_.page_bytes,
          .virtual_memory = true,
          .host_accessible = true};
}

SourceUsage HostMemorySource::usage() const {
  if (config_.capacity_bytes == 0) return {.free_bytes = available_bytes(), .total_bytes = machine_bytes()};
  const std::size_t used = used_bytes();
  return {.free_bytes = used < config_.capacity_bytes ? config_.capacity_bytes - used : 0,
          .total_bytes = config_.capacity_bytes};
}

bool HostMemorySource::charge(std::size_t bytes) noexcept {
  std::size_t used = used_bytes_.load(std::memory_order_relaxed);
  do {
    if (config_.capacity_bytes != 0 && (used > config_.capacity_bytes || bytes > config_.capacity_bytes - used)) {
      return false;
    }
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void* HostMemorySource::acquire(std::size_t bytes) {
  if (bytes == 0 || bytes > ~std::size_t{0} / 2) return nullptr;
  const std::size_t size = rounded(bytes);
  if (!charge(size)) return nullptr;
  void* address = size < kHeapLimitBytes ? std::aligned_alloc(kAlignment, size) : map_anonymous(size);
  if (address == nullptr) refund(size);
  return address;
}

void HostMemorySource::release(void* address, std::size_t bytes) noexcept {
  if (address == nullptr) return;
  const std::size_t size = rounded(bytes);
  if (size < kHeapLimitBytes) {
    std::free(address);
  } else {
    ::munmap(address, size);
  }
  refund(size);
}

void* HostMemorySource::reserve(std::size_t bytes) {
  const std::size_t size = align_up(bytes, config_.page_bytes);
  const std::size_t slack = config_.page_bytes;
  void* raw = ::mmap(nullptr, size + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = align_up(start, config_.page_bytes);
  if (aligned > start) ::munmap(raw, aligned - start);
  if (const std::size_t tail = start + slack - aligned; tail > 0) {
    ::munmap(reinterpret_cast<void*>(aligned + size), tail);
  }
  return reinterpret_cast<void*>(aligned);
}

void HostMemorySource::unreserve(void* address, std::size_t bytes) noexcept {
  if (address != nullptr) ::munmap(address, align_up(bytes, config_.page_bytes));
}

Physical HostMemorySource::create(std::size_t bytes) {
  if (bytes == 0 || bytes % config_.page_bytes != 0) {
    throw Error(config_.device + ": physical memory comes in multiples of " + format_size_exact(config_.page_bytes) +
                ", not " + format_size_exact(bytes));
  }
  if (!charge(bytes)) return {};
  const std::lock_guard lock(mutex_);
  if (file_ < 0) {
    file_ = ::memfd_create("tenon-cpu", MFD_CLOEXEC);
    if (file_ < 0) {
      refund(bytes);
      fail(config_.device, "open a memfd for", bytes, errno, "the system must allow memfd_create for virtual memory");
    }
  }
  if (next_offset_ + bytes > file_bytes_) {
    const std::size_t grown = align_up(next_offset_ + bytes, kFileStepBytes);
    if (::ftruncate(file_, static_cast<off_t>(grown)) != 0) {
      refund(bytes);
      fail(config_.device, "grow the memfd to", grown, errno, "check the limit on file sizes (ulimit -f)");
    }
    file_bytes_ = grown;
  }
  const Physical physical{next_offset_ / config_.page_bytes + 1};
  next_offset_ += bytes;
  return physical;
}

void HostMemorySource::destroy(Physical physical, std::size_t bytes) noexcept {
  if (!physical) return;
  const std::size_t offset = (physical.value - 1) * config_.page_bytes;
  ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  refund(bytes);
}

void HostMemorySource::map(void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  const std::size_t position = (physical.value - 1) * config_.page_bytes + offset;
  if (::mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, static_cast<off_t>(position)) ==
      MAP_FAILED) {
    fail(config_.device, "map", bytes, errno, "the number of mappings is limited by vm.max_map_count");
  }
}

void HostMemorySource::unmap(void* address, std::size_t bytes) noexcept {
  static_cast<void>(::mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

}  // namespace tenon
