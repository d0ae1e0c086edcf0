// MappedRanges: which physical memory is mapped where, and how much of it is mapped at least once.
#pragma once

#include <tenon/memory/memory_source.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

namespace tenon {

/// Not thread-safe. One physical may be mapped at many addresses (stitching): its bytes count once.
class MappedRanges {
 public:
  /// Returns how many bytes of the physical are now mapped that were not before.
  std::size_t map(const void* address, std::size_t bytes, Physical physical, std::size_t offset);
  /// Every mapping inside the range goes, cut at the borders. Returns the bytes that are mapped nowhere any more.
  std::size_t unmap(const void* address, std::size_t bytes);

 private:
  struct Mapping {
    std::size_t bytes;
    std::uint64_t physical;
    std::size_t offset;
  };
  /// Breaks of the use count over one physical: offset -> mappings from there to the next break.
  using Cover = std::map<std::size_t, int>;

  std::size_t add(std::uint64_t physical, std::size_t offset, std::size_t bytes, int change);

  std::map<std::uintptr_t, Mapping> mappings_;
  std::unordered_map<std::uint64_t, Cover> covers_;
};

}  // namespace tenon
