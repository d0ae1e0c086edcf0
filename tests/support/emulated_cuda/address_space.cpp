// Device memory: addresses by counting up, bytes by mmap.
#include "support/emulated_cuda/address_space.h"

#include "support/emulated_cuda/misuse.h"
#include "support/emulated_cuda/work.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tenon::emulated_cuda {

namespace {

constexpr std::size_t kSpaceBytes = std::size_t{16} << 40;
constexpr std::size_t kPoisonedBytes = std::size_t{1} << 20;  // of new memory; the rest is zero, for the sake of speed
constexpr unsigned char kPoison = 0xA5;

}  // namespace

Backing::Backing(std::size_t bytes) : bytes_(bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) misuse("the host has no " + std::to_string(bytes) + " bytes for device memory");
  data_ = static_cast<unsigned char*>(data);
  std::memset(data_, kPoison, std::min(bytes, kPoisonedBytes));
}

Backing::~Backing() { ::munmap(data_, bytes_); }

bool Extent::is_reached_by(int device, const std::function<bool(int)>& peers) const {
  if (mapped) return reachable.contains(device);
  return owner == device || (pool != nullptr ? pool->access->contains(device) : peers(owner));
}

AddressSpace::AddressSpace() {
  void* base = ::mmap(nullptr, kSpaceBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) misuse("the host has no addresses for device memory");
  base_ = next_ = reinterpret_cast<Address>(base);
  end_ = base_ + kSpaceBytes;
}

AddressSpace::~AddressSpace() { ::munmap(reinterpret_cast<void*>(base_), kSpaceBytes); }

Address AddressSpace::take(std::size_t bytes, std::size_t alignment) {
  const Address address = (next_ + alignment - 1) / alignment * alignment;
  if (address > end_ || bytes > end_ - address) return 0;
  next_ = address + bytes + alignment;  // a gap, so that what runs over an end meets nothing
  return address;
}

bool AddressSpace::is_device(const void* pointer) const {
  const auto address = reinterpret_cast<Address>(pointer);
  return address >= base_ && address < end_;
}

Extent& AddressSpace::add(Extent extent) {
  return extents_.insert_or_assign(extent.address, std::move(extent)).first->second;
}

Extent* AddressSpace::beginning_at(Address address) {
  const auto found = extents_.find(address);
  return found == extents_.end() ? nullptr : &found->second;
}

Extent* AddressSpace::holding(Address address) {
  auto after = extents_.upper_bound(address);
  if (after == extents_.begin()) return nullptr;
  Extent& extent = std::prev(after)->second;
  return address - extent.address < extent.bytes ? &extent : nullptr;
}

bool AddressSpace::reserved(Address address, std::size_t bytes) const {
  auto after = reservations_.upper_bound(address);
  if (after == reservations_.begin()) return false;
  const Reservation& reservation = std::prev(after)->second;
  const Address offset = address - reservation.address;
  return offset <= reservation.bytes && bytes <= reservation.bytes - offset;
}

std::vector<Segment> AddressSpace::segments(Address address, std::size_t bytes, int device, const std::string& what,
                                            const std::function<bool(int)>& peers) {
  std::vector<Segment> found;
  for (std::size_t done = 0; done < bytes;) {
    const Address at = address + done;
    const Extent* extent = holding(at);
    if (extent == nullptr) {
      misuse(what + " uses " + std::to_string(bytes) + " bytes at " + hexadecimal(address) + ", but nothing is at " +
             hexadecimal(at) + (done == 0 ? "" : ", " + std::to_string(done) + " bytes on"));
    }
    if (!extent->is_reached_by(device, peers)) {
      misuse(what + " on device " + std::to_string(device) + " uses memory of device " + std::to_string(extent->owner) +
             " at " + hexadecimal(at) + " without access to it");
    }
    if (!extent->is_there && in_work()) {
      misuse(what + " uses memory at " + hexadecimal(at) + " before a stream has got to its allocation");
    }
    const std::size_t offset = at - extent->address;
    const std::size_t here = std::min(bytes - done, extent->bytes - offset);
    found.push_back({extent->backing->data() + offset, here});
    done += here;
    if (!extent->mapped && done < bytes) {
      misuse(what + " uses " + std::to_string(bytes) + " bytes at " + hexadecimal(address) + ", " +
             std::to_string(bytes - done) + " of them beyond the end of its memory");
    }
  }
  return found;
}

}  // namespace tenon::emulated_cuda
