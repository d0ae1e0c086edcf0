// Which pieces of work come before which, by all that orders them: their stream, events, the legacy stream, and a host
// that waited. Two pieces that use the same bytes, one of them writing, must be ordered; where they are not, an event
// was forgotten or memory is used again too early, and that is found in whatever order they ran.
//
// Pieces form lines, each piece after the one before it on its line; a piece knows of each line how far it comes after
// it (a vector clock: Mattern, "Virtual time and global states of distributed systems", 1989).
#pragma once

#include "support/emulated_cuda/address_space.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tenon::emulated_cuda {

/// Where a piece of work stands.
struct Moment {
  std::uint32_t line = 0;
  std::uint64_t number = 0;                        ///< on its line, from 1
  std::map<std::uint32_t, std::uint64_t> reached;  ///< of each line, the last piece that it comes after, or is
  bool is_after(const Moment& other) const {
    const auto found = reached.find(other.line);
    return found != reached.end() && found->second >= other.number;
  }
};
using MomentRef = std::shared_ptr<const Moment>;

class StreamOrder {
 public:
  explicit StreamOrder(bool finds_unordered_use) : finds_unordered_use_(finds_unordered_use) {}

  /// The moment of a new piece that comes after those, and after all that the host has waited for.
  MomentRef next(int device, const std::vector<MomentRef>& after);
  void host_waited_for(const MomentRef& moment);
  /// For all that was queued on it so far.
  void host_waited_for_device(int device);
  /// A piece uses these bytes; misuse() where another one does that is not ordered with it. `what` names the piece.
  void use(const MomentRef& moment, const std::string& what, Address address, std::size_t bytes, bool writes);
  /// Another memory may come to be there.
  void forget(Address address, std::size_t bytes);
  /// Whether there is anything to find: not with one stream alone.
  bool is_looking() const { return finds_unordered_use_ && lines_.size() > 1; }

 private:
  struct Use {
    MomentRef moment;
    std::string what;
    Address address;
    std::size_t bytes;
    bool writes;
  };

  const bool finds_unordered_use_;
  struct Line {
    int device;
    std::uint64_t last;  ///< the number of its last piece
  };

  std::vector<Line> lines_;
  std::map<std::uint32_t, std::uint64_t> waited_;  ///< what the host has waited for
  bool has_waited_ = false;                        ///< since uses were looked through
  std::vector<Use> uses_;                          ///< by pieces that the host has not waited for
};

}  // namespace tenon::emulated_cuda
