// AddressRangeWatcher: learns how much of its address ranges mattered. A source names its watcher
// (MemorySource::address_range_watcher); sources that stand around it pass the name on.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>

namespace tenon {

/// Told by policies that reserve address ranges as long as the device is large. A range's length takes part in their
/// decisions: whether a request fits behind a hole, which of two blocks can grow further. A replay that knows from
/// which length on all decisions would have been the same knows for which other capacities it holds
/// (replay/advise/capacity_walk.h).
class TENON_EXPORT AddressRangeWatcher {
 public:
  virtual ~AddressRangeWatcher();
  /// Ranges of whole pages of `page_bytes` of at least `range_bytes`, and not longer than they were, would have led to
  /// the same decision.
  virtual void relied_on(std::size_t page_bytes, std::size_t range_bytes) noexcept = 0;
};

}  // namespace tenon
