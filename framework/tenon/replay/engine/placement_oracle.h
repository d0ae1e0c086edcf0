// PlacementOracle: watches where an allocator puts blocks. It throws PlacementError when two live blocks share a byte,
// when a block lies outside what the device gave, or when memory goes back under a live block.
//
// Addresses count twice: as such, and, where they are mapped, as the physical memory behind them, so that an allocator
// that maps one page at two places cannot hand it out twice.
#pragma once

#include <tenon/core/error.h>
#include <tenon/memory/sources/address_ranges.h>
#include <tenon/memory/sources/observed_source.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon::replay {

class TENON_EXPORT PlacementError : public Error {
 public:
  using Error::Error;
};

/// Where a block lies, by the order in which the device gave segments (or address ranges) out.
struct Place {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
};

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class TENON_API PlacementOracle final : public SourceListener {
 public:
  /// A block was handed out.
  Place place(std::uint32_t slot, std::uint64_t address, std::uint64_t bytes, std::uint64_t alignment);
  /// It was given back. `may_be_in_use`: another stream has not got there yet, so its bytes stay taken until
  /// completed().
  void lift(std::uint32_t slot, bool may_be_in_use);
  void completed(std::uint32_t slot);

  /// All streams may have got there: no block waits any more.
  void synchronized();

  void acquired(const void* address, std::size_t bytes) noexcept override;
  void releasing(const void* address, std::size_t bytes) noexcept override;
  void mapped(const void* address, std::size_t bytes, Physical physical, std::size_t offset) noexcept override;
  void unmapped(const void* address, std::size_t bytes) noexcept override;
  void address_reserved(const void* address, std::size_t bytes) noexcept override;
  void address_unreserving(const void* address, std::size_t bytes) noexcept override;
  void created(Physical physical, std::size_t bytes) noexcept override;
  void destroying(Physical physical, std::size_t bytes) noexcept override;

  /// The first thing that went wrong in a call that cannot throw (release, unmap); thrown by the next place() or
  /// lift().
  void rethrow_problem() {
    if (!problem_.empty()) [[unlikely]]
      throw_problem();
  }

 private:
  struct Segment {
    std::uint64_t bytes = 0;
    std::uint64_t ordinal = 0;
    bool is_virtual = false;
  };
  struct Mapping {
    std::uint64_t bytes = 0;
    std::uint64_t physical_begin = 0;  ///< in the flat space of physical memory
    std::uint64_t physical = 0;
  };
  /// By the slot of their block.
  using Intervals = AddressRanges<std::uint32_t>;

  struct Live {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    Intervals::Range interval;  ///< in addresses_
    bool is_live = false;
    bool is_waiting = false;
  };

  const Segment& segment_of(std::uint64_t address, std::uint64_t bytes, std::uint64_t& base) const;
  void find_physical_extents(std::uint64_t address, std::uint64_t bytes);
  void drop(std::uint32_t slot);
  void problem(const std::string& what);
  [[noreturn]] void throw_problem();
  std::string describe(std::uint64_t address, std::uint64_t bytes) const;

  std::map<std::uint64_t, Segment> segments_;
  std::uint64_t next_ordinal_ = 0;
  std::map<std::uint64_t, Mapping> mappings_;
  struct PhysicalExtent {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::uint64_t, PhysicalExtent> physicals_;
  std::uint64_t next_physical_ = 0;
  Intervals addresses_;
  Intervals physical_;
  std::vector<Extent> extents_;  ///< of the block that is being placed
  std::vector<Live> live_;
  std::vector<std::vector<Intervals::Range>> physical_intervals_;  ///< by slot: in physical_
  std::vector<std::uint32_t> waiting_;
  std::string problem_;
};

}  // namespace tenon::replay
