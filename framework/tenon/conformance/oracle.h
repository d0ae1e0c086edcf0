// The interval oracle: which bytes are in use right now, by whom, and who may have them next.
#pragma once

#include <tenon/conformance/finding.h>
#include <tenon/memory/allocator.h>
#include <tenon/memory/memory_source.h>
#include <tenon/memory/sources/address_ranges.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::conformance {

/// Asks the device itself, past the source that the allocator sees.
class Oracle {
 public:
  explicit Oracle(MemorySource& device) : device_(device) {}

  /// Takes note of a block for `stream`. Returns what is wrong with it: it overlaps a live one, or bytes that a stream
  /// other than its own may still be using; empty when nothing is.
  Finding hand_out(const Block& block, StreamRef stream);
  /// `users`: every stream that used it.
  void take_back(const Block& block, const std::vector<StreamRef>& users);
  /// What is wrong with giving these bytes back to the device now; empty when no stream uses them any more.
  std::string still_used(std::uintptr_t address, std::size_t bytes);

 private:
  struct Pending {
    std::uintptr_t address;
    std::size_t bytes;
    std::vector<std::pair<StreamRef, Ticket>> users;
  };
  void forget_reached();

  MemorySource& device_;
  AddressRanges<> live_;
  std::vector<Pending> pending_;
};

}  // namespace tenon::conformance
