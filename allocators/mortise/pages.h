// Pages: where an address lies in them. They are mostly of a power of two bytes, and then no division is needed.
#pragma once

#include <tenon/core/units.h>

#include <cstddef>
#include <cstdint>

namespace tenon::mortise {

class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(bytes), within_(is_power_of_two(bytes) ? bytes - 1 : 0) {}

  std::size_t bytes() const { return bytes_; }
  /// The last beginning of a page at the address or before it.
  std::uintptr_t floor(std::uintptr_t address) const { return address - offset(address); }
  /// The first one at the address or behind it.
  std::uintptr_t ceil(std::uintptr_t address) const { return floor(address + bytes_ - 1); }
  /// Whether these bytes lie in one page, and neither at its beginning nor at its end.
  bool are_within_one(std::uintptr_t begin, std::uintptr_t end) const {
    return offset(begin) != 0 && offset(end) != 0 && floor(begin) == floor(end);
  }

 private:
  std::size_t offset(std::uintptr_t address) const { return within_ != 0 ? address & within_ : address % bytes_; }

  std::size_t bytes_;
  std::size_t within_;  ///< the bits of an address in its page; 0 where it has to be divided
};

}  // namespace tenon::mortise
