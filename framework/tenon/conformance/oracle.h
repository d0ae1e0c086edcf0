// The interval oracle: which bytes are in use right now, by whom, and who may have them next. Bytes count twice: by
// their addresses, and where those are mapped by the physical memory behind them, so that an allocator that maps one
// page at two addresses cannot hand it out twice.
#pragma once

#include <tenon/conformance/checked_source.h>
#include <tenon/conformance/finding.h>
#include <tenon/memory/allocator.h>
#include <tenon/memory/memory_source.h>
#include <tenon/memory/sources/address_ranges.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon::conformance {

/// Asks the device itself, past the source that the allocator sees.
class Oracle {
 public:
  explicit Oracle(MemorySource& device) : device_(device) {}

  /// Takes note of a block for `stream`, with the physical memory behind it. Returns what is wrong with it: it overlaps
  /// a live one, or bytes that a stream other than its own may still be using; empty when nothing is.
  Finding hand_out(const Block& block, StreamRef stream, std::vector<PhysicalExtent> behind = {});
  /// `users`: every stream that used it.
  void take_back(const Block& block, const std::vector<StreamRef>& users);
  /// What is wrong with giving these bytes back to the device now; empty when no stream uses them any more.
  std::string still_used(std::uintptr_t address, std::size_t bytes);

 private:
  struct Pending {
    std::uintptr_t address;
    std::size_t bytes;
    std::vector<PhysicalExtent> behind;
    std::vector<std::pair<StreamRef, Ticket>> users;
    bool shares_a_byte(std::uintptr_t begin, std::uintptr_t end, const std::vector<PhysicalExtent>& of_block) const;
  };
  /// Of a live block.
  struct Addresses {
    std::uintptr_t begin = 0, end = 0;
  };
  Finding hand_out_physical(const Addresses& block, std::vector<PhysicalExtent> behind);
  void forget_reached();

  MemorySource& device_;
  AddressRanges<> live_;
  AddressRanges<Addresses> physical_;                                  ///< what live blocks have behind them
  std::map<std::uintptr_t, std::vector<PhysicalExtent>> physical_of_;  ///< by a live block's address
  std::vector<Pending> pending_;
};

}  // namespace tenon::conformance
