// PlacementOracle: interval maps; clarity before speed, the timed pass runs without it.
#include <tenon/core/units.h>
#include <tenon/memory/snapshot.h>
#include <tenon/replay/engine/placement_oracle.h>

#include <algorithm>
#include <cstdio>

namespace tenon::replay {

std::string PlacementOracle::describe(std::uint64_t address, std::uint64_t bytes) const {
  char text[64];
  std::snprintf(text, sizeof text, "[0x%llx, 0x%llx)", static_cast<unsigned long long>(address),
                static_cast<unsigned long long>(address + bytes));
  return text;
}

const PlacementOracle::Segment& PlacementOracle::segment_of(std::uint64_t address, std::uint64_t bytes,
                                                            std::uint64_t& base) const {
  auto it = segments_.upper_bound(address);
  if (it != segments_.begin()) {
    --it;
    if (address - it->first < it->second.bytes && it->second.bytes - (address - it->first) >= bytes) {
      base = it->first;
      return it->second;
    }
  }
  throw PlacementError("handed out " + describe(address, bytes) +
                       ", which is not inside one segment that the device gave");
}

void PlacementOracle::find_physical_extents(std::uint64_t address, std::uint64_t bytes) {
  extents_.clear();
  std::uint64_t next = address;
  const std::uint64_t end = address + bytes;
  auto it = mappings_.upper_bound(address);
  if (it != mappings_.begin()) --it;
  while (next < end) {
    if (it == mappings_.end() || it->first > next || it->first + it->second.bytes <= next) {
      throw PlacementError("handed out " + describe(address, bytes) + ", of which " + describe(next, end - next) +
                           " has no memory mapped behind it");
    }
    const std::uint64_t part_end = std::min(end, it->first + it->second.bytes);
    const std::uint64_t begin = it->second.physical_begin + (next - it->first);
    if (!extents_.empty() && extents_.back().end == begin) {
      extents_.back().end = begin + (part_end - next);
    } else {
      extents_.push_back({begin, begin + (part_end - next)});
    }
    next = part_end;
    ++it;
  }
}

Place PlacementOracle::place(std::uint32_t slot, std::uint64_t address, std::uint64_t bytes, std::uint64_t alignment) {
  rethrow_problem();
  if (address == 0) throw PlacementError("handed out a null pointer without an OutOfMemory error");
  if (address % alignment != 0)
    throw PlacementError("handed out " + describe(address, bytes) + ", which is not aligned to " +
                         std::to_string(alignment));
  std::uint64_t base = 0;
  const Segment& segment = segment_of(address, bytes, base);
  const auto [interval, is_free] = addresses_.add(address, address + bytes, slot);
  if (!is_free) {
    const Live& other = live_[interval->second.value];
    throw PlacementError("handed out " + describe(address, bytes) + ", which overlaps the live block " +
                         describe(other.address, other.bytes) +
                         (other.is_waiting ? " (freed, but another stream may still use it)" : ""));
  }
  if (slot >= live_.size()) {
    live_.resize(slot + 1);
    physical_intervals_.resize(slot + 1);
  }
  live_[slot] = {.address = address, .bytes = bytes, .interval = interval, .is_live = true};
  if (segment.is_virtual) {
    find_physical_extents(address, bytes);
    for (const Extent& extent : extents_) {
      const auto [behind, is_its_own] = physical_.add(extent.begin, extent.end, slot);
      if (!is_its_own) {
        const Live& other = live_[behind->second.value];
        throw PlacementError("handed out " + describe(address, bytes) +
                             ", whose physical memory is also that of the live block " +
                             describe(other.address, other.bytes));
      }
      physical_intervals_[slot].push_back(behind);
    }
  }
  return {segment.ordinal, address - base};
}

void PlacementOracle::drop(std::uint32_t slot) {
  Live& live = live_[slot];
  if (live.is_live) addresses_.remove(live.interval);
  for (const Intervals::Range interval : physical_intervals_[slot]) physical_.remove(interval);
  physical_intervals_[slot].clear();
  live = {};
}

void PlacementOracle::lift(std::uint32_t slot, bool may_be_in_use) {
  if (may_be_in_use) {
    live_[slot].is_waiting = true;
    waiting_.push_back(slot);
  } else {
    drop(slot);
  }
}

void PlacementOracle::completed(std::uint32_t slot) {
  rethrow_problem();
  if (slot < live_.size() && live_[slot].is_waiting) drop(slot);
}

void PlacementOracle::synchronized() {
  for (const std::uint32_t slot : waiting_) {
    if (live_[slot].is_waiting) drop(slot);
  }
  waiting_.clear();
}

void PlacementOracle::acquired(const void* pointer, std::size_t bytes) noexcept {
  const std::uint64_t address = Address(pointer);
  segments_[address] = {bytes, next_ordinal_++, false};
}

void PlacementOracle::releasing(const void* pointer, std::size_t bytes) noexcept {
  const std::uint64_t address = Address(pointer);
  const auto it = segments_.find(address);
  if (it == segments_.end() || it->second.is_virtual || it->second.bytes != bytes) {
    return problem("gave " + describe(address, bytes) + " back to the device, which never gave that segment");
  }
  if (const std::uint32_t* const block = addresses_.overlapping(address, address + bytes)) {
    problem("gave the segment " + describe(address, bytes) + " back while " +
            describe(live_[*block].address, live_[*block].bytes) + " in it is in use");
  }
  segments_.erase(it);
}

void PlacementOracle::address_reserved(const void* pointer, std::size_t bytes) noexcept {
  const std::uint64_t address = Address(pointer);
  segments_[address] = {bytes, next_ordinal_++, true};
}

void PlacementOracle::address_unreserving(const void* pointer, std::size_t bytes) noexcept {
  const std::uint64_t address = Address(pointer);
  const auto it = segments_.find(address);
  if (it == segments_.end() || !it->second.is_virtual || it->second.bytes != bytes) {
    return problem("unreserved " + describe(address, bytes) + ", which was not reserved like that");
  }
  if (const auto mapping = mappings_.lower_bound(address);
      mapping != mappings_.end() && mapping->first < address + bytes) {
    problem("unreserved " + describe(address, bytes) + " with memory still mapped in it");
  }
  segments_.erase(it);
}

void PlacementOracle::created(Physical physical, std::size_t bytes) noexcept {
  physicals_[physical.value] = {next_physical_, bytes};
  next_physical_ += bytes;
}

void PlacementOracle::destroying(Physical physical, std::size_t bytes) noexcept {
  const auto it = physicals_.find(physical.value);
  if (it == physicals_.end() || it->second.bytes != bytes)
    return problem("destroyed physical memory that was never created, or with another size");
  if (const std::uint32_t* const block = physical_.overlapping(it->second.begin, it->second.begin + bytes)) {
    problem("destroyed the memory behind " + describe(live_[*block].address, live_[*block].bytes) +
            ", which is in use");
  }
  physicals_.erase(it);
}

void PlacementOracle::mapped(const void* pointer, std::size_t bytes, Physical physical, std::size_t offset) noexcept {
  const std::uint64_t address = Address(pointer);
  const auto it = physicals_.find(physical.value);
  if (it == physicals_.end() || offset + bytes > it->second.bytes)
    return problem("mapped physical memory that does not exist at " + describe(address, bytes));
  const auto next = mappings_.lower_bound(address);
  const bool overlaps = (next != mappings_.end() && next->first < address + bytes) ||
                        (next != mappings_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address);
  if (overlaps) return problem("mapped memory at " + describe(address, bytes) + ", where some is mapped already");
  mappings_[address] = {bytes, it->second.begin + offset, physical.value};
}

// An unmap may cover several mappings, or part of one.
void PlacementOracle::unmapped(const void* pointer, std::size_t bytes) noexcept {
  const std::uint64_t address = Address(pointer);
  if (const std::uint32_t* const block = addresses_.overlapping(address, address + bytes)) {
    problem("unmapped " + describe(address, bytes) + " while " + describe(live_[*block].address, live_[*block].bytes) +
            " in it is in use");
  }
  const std::uint64_t end = address + bytes;
  auto it = mappings_.upper_bound(address);
  if (it != mappings_.begin()) --it;
  while (it != mappings_.end() && it->first < end) {
    const std::uint64_t from = it->first;
    const Mapping mapping = it->second;
    if (from + mapping.bytes <= address) {
      ++it;
      continue;
    }
    it = mappings_.erase(it);
    if (from < address) mappings_[from] = {address - from, mapping.physical_begin, mapping.physical};
    if (from + mapping.bytes > end) {
      it = mappings_
               .insert_or_assign(
                   end, Mapping{from + mapping.bytes - end, mapping.physical_begin + (end - from), mapping.physical})
               .first;
      ++it;
    }
  }
}

void PlacementOracle::problem(const std::string& what) {
  if (problem_.empty()) problem_ = what;
}

void PlacementOracle::throw_problem() {
  std::string what;
  what.swap(problem_);
  throw PlacementError(what);
}

}  // namespace tenon::replay
