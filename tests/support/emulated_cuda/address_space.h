// Device memory. Its addresses lie in one range that the host can neither read nor write; the bytes are elsewhere, and
// segments() says where. An address is never given twice, so that what is used after it was freed is found.
#pragma once

#include "support/emulated_cuda/pool.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tenon::emulated_cuda {

using Address = std::uint64_t;

/// Bytes of the host behind device memory.
class Backing {
 public:
  explicit Backing(std::size_t bytes);
  ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  unsigned char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  unsigned char* data_;
  std::size_t bytes_;
};

/// Memory of cudaMalloc, or one mapping of virtual memory.
struct Extent {
  Address address = 0;
  std::size_t bytes = 0;
  int owner = 0;
  bool mapped = false;      ///< by cuMemMap
  std::set<int> reachable;  ///< devices with access, of a mapping
  std::shared_ptr<Backing> backing;
  Pool* pool = nullptr;   ///< of stream-ordered memory
  bool is_there = true;   ///< false until a stream has got to the allocation
  bool is_freed = false;  ///< a free of it is queued

  /// `peers(owner)`: may the device use what cudaMalloc gave of another one?
  bool is_reached_by(int device, const std::function<bool(int)>& peers) const;
};

struct Segment {
  unsigned char* data;
  std::size_t bytes;
};

class AddressSpace {
 public:
  AddressSpace();
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// New addresses; 0: there are none left.
  Address take(std::size_t bytes, std::size_t alignment);
  bool is_device(const void* pointer) const;

  Extent& add(Extent extent);
  void remove(Address address) { extents_.erase(address); }
  /// The extent that begins at or holds the address; null: nothing is there.
  Extent* beginning_at(Address address);
  Extent* holding(Address address);

  struct Reservation {
    Address address;
    std::size_t bytes;
  };
  std::map<Address, Reservation>& reservations() { return reservations_; }
  bool reserved(Address address, std::size_t bytes) const;

  /// The bytes behind a range; misuse() where some are not there, or `device` may not reach them. `peers(owner)`: may
  /// it reach what cudaMalloc gave of another device?
  std::vector<Segment> segments(Address address, std::size_t bytes, int device, const std::string& what,
                                const std::function<bool(int)>& peers);

 private:
  Address base_;
  Address next_;
  Address end_;
  std::map<Address, Extent> extents_;
  std::map<Address, Reservation> reservations_;
};

}  // namespace tenon::emulated_cuda
