// DefaultRules: what a policy says of itself to be a TiledAllocator, where it does not say otherwise.
//
// struct Rules : DefaultRules {               what a policy says
//   using Index = …;                          of free tiles: insert, erase; find(bytes): one that suffices, or null;
//                                             find_hard(bytes): the same, however long it takes; holds, empty, any
//   static constexpr const char* kName;
//   explicit Rules(const AllocatorContext&);
//   std::size_t round(bytes) const;           below `bytes` where it has wrapped
//   std::size_t cut_at(whole, bytes) const;   how long the left part becomes; 0: no further cut
//   std::size_t segment_bytes(bytes, reserved) const;      what to ask the device for, at least `bytes`
// };
#pragma once

#include "tile.h"

#include <tenon/memory/allocator.h>

#include <cstddef>
#include <limits>

namespace tenon::tiled {

/// What most policies say.
struct DefaultRules {
  /// Streams share segments: a free tile goes to another stream once its own has got there.
  static constexpr bool kShares = false;
  /// False: the host serialises the calls, as it has to where streams share segments.
  static constexpr bool kIsThreadSafe = false;
  /// With kShares: other streams are waited for before the device is asked for more.
  static constexpr bool kWaitsFirst = false;
  /// With kShares: each free marks its stream, and others wait for that point instead of all work that there is by
  /// then.
  static constexpr bool kMarksFrees = false;
  /// Blocks are kept by lanes: those of lane 0 come from segments, those of another one lie in pages of its own, which
  /// come from lane 0 and go back there when all of it is free.
  static constexpr bool kLanes = false;
  /// See Note [Last freed].
  static constexpr bool kKeepsLastFreed = false;
  /// A freed tile is joined with whatever is free beside it. Else as long as may_join says so.
  static constexpr bool kJoinsAll = true;

  std::size_t lane(std::size_t /*bytes*/, const Request& /*request*/) const { return 0; }
  std::size_t page_bytes(std::size_t /*lane*/) const { return 0; }
  bool may_join(const Tile* /*left*/, const Tile* /*right*/, std::size_t /*offset_of_left*/) const { return true; }
  /// With kShares: whether what another stream has freed is taken once that stream has come to an end of its work, and
  /// whether it is waited for.
  bool takes_from_idle() const { return false; }
  bool waits_for_others() const { return true; }
  /// What may stay cached when the device is asked for more while no stream has work; all of it unless said otherwise.
  std::size_t kept_when_idle() const { return std::numeric_limits<std::size_t>::max(); }
  /// The device has given a segment for a request of so many bytes.
  void grew(std::size_t /*bytes*/) {}
  /// What to ask for after so much was refused; 0: nothing more.
  std::size_t after_refusal(std::size_t /*asked*/, std::size_t /*bytes*/) const { return 0; }

  /// Memory is mapped behind a range of addresses of each stream, instead of taken in segments.
  bool grows_ranges() const { return false; }
  std::size_t range_bytes(std::size_t /*bytes*/) const { return 0; }
  std::size_t map_bytes(std::size_t bytes) const { return bytes; }
  /// The part of a range up to here has mattered.
  void range_reached(std::size_t /*bytes*/) const {}
};

}  // namespace tenon::tiled
