// StreamRef: a stream of one device as an allocator sees it.
#pragma once

#include <compare>
#include <cstdint>

namespace tenon {

/// An opaque id; 0 is the default stream. Work on one stream runs in order.
struct StreamRef {
  std::uint64_t id = 0;
  bool operator==(const StreamRef&) const = default;
  auto operator<=>(const StreamRef&) const = default;
};

}  // namespace tenon
