// Place: where a request was served: at an address of the home space, or in a joined range, which may be gone by now.
#pragma once

#include "../tiled/rhythm.h"

#include <cstdint>

namespace tenon::mortise {

class Place {
 public:
  static Place at(std::uintptr_t address) { return Place(address); }
  static Place in_joined(std::uint64_t serial) { return Place(serial << 1 | 1); }

  bool is_joined() const { return (value_ & 1) != 0; }  // addresses are multiples of kGrain
  std::uintptr_t address() const { return value_; }
  std::uint64_t serial() const { return value_ >> 1; }
  bool operator==(const Place&) const = default;
  bool is_at(std::uintptr_t address) const { return value_ == address; }

 private:
  explicit Place(std::uint64_t value) : value_(value) {}
  std::uint64_t value_;
};
using Rhythm = tiled::Rhythm<Place>;
using Rhythms = tiled::Rhythms<Rhythm>;

}  // namespace tenon::mortise
