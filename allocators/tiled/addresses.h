// Addresses: ranges of addresses without memory, out of long ones that are reserved once: a range that is to be mapped
// costs no call of its own.
#pragma once

#include <tenon/core/units.h>
#include <tenon/memory/memory_source.h>
#include <tenon/memory/snapshot.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <new>
#include <utility>

namespace tenon::tiled {

class Addresses {
 public:
  /// Ranges are multiples of `page_bytes`, the source's page; so many bytes are reserved at once where the source has
  /// them.
  Addresses(MemorySource& source, std::size_t page_bytes, std::size_t reserved_at_once = 64 * GiB)
      : source_(source), page_bytes_(page_bytes), reserved_at_once_(align_up(reserved_at_once, page_bytes)) {}
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  /// Nothing is mapped any more.
  ~Addresses() {
    for (const auto& [address, bytes] : reserved_) source_.unreserve(pointer(address), bytes);
  }

  /// So many bytes, the lowest that are free; 0 where there are none.
  std::uintptr_t take(std::size_t bytes) {
    auto hole = std::ranges::find_if(holes_, [&](const auto& entry) { return entry.second >= bytes; });
    if (hole == holes_.end() && (hole = reserve(bytes)) == holes_.end()) return 0;
    const std::uintptr_t address = hole->first;
    if (hole->second == bytes) {
      holes_.erase(hole);
      return address;
    }
    auto node = holes_.extract(hole);
    node.key() += bytes;
    node.mapped() -= bytes;
    holes_.insert(std::move(node));
    return address;
  }

  /// Nothing is mapped there. Two reservations are never joined: a mapping lies in one of them.
  void give(std::uintptr_t address, std::size_t bytes) noexcept {
    try {
      auto hole = holes_.emplace(address, bytes).first;
      if (const auto next = std::next(hole); next != holes_.end() && are_joined(*hole, *next)) {
        hole->second += next->second;
        holes_.erase(next);
      }
      if (hole != holes_.begin() && are_joined(*std::prev(hole), *hole)) {
        std::prev(hole)->second += hole->second;
        holes_.erase(hole);
      }
    } catch (const std::bad_alloc&) {
      // They are lost until the end. There are others.
    }
  }

 private:
  using Holes = std::map<std::uintptr_t, std::size_t>;

  static void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }
  bool are_joined(const Holes::value_type& left, const Holes::value_type& right) const {
    return left.first + left.second == right.first && !reserved_.contains(right.first);
  }

  /// What the source did not have once is not asked for again.
  Holes::iterator reserve(std::size_t bytes) {
    const auto half = [&](std::size_t whole) { return whole / 2 / page_bytes_ * page_bytes_; };
    for (std::size_t wanted = std::max(reserved_at_once_, bytes);; wanted = std::max(half(wanted), bytes)) {
      void* const address = source_.reserve(wanted);
      if (!address && wanted == bytes) break;
      if (!address) continue;
      reserved_at_once_ = std::min(reserved_at_once_, wanted);
      try {
        reserved_.emplace(Address(address), wanted);
        return holes_.emplace(Address(address), wanted).first;
      } catch (...) {
        reserved_.erase(Address(address));
        source_.unreserve(address, wanted);
        throw;
      }
    }
    reserved_at_once_ = std::min(reserved_at_once_, half(bytes));
    return holes_.end();
  }

  MemorySource& source_;
  const std::size_t page_bytes_;
  std::size_t reserved_at_once_;
  Holes holes_;
  std::map<std::uintptr_t, std::size_t> reserved_;
};

}  // namespace tenon::tiled
