// AddressRanges: which addresses are in use, and by what. Disjoint ranges, each with a value; one that shares a byte
// with another is refused, and the answer says with which.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <variant>
#include <vector>

namespace tenon {

/// Not thread-safe. Ranges are [begin, end).
template <class Value = std::monostate>
class AddressRanges {
  struct Rest {
    std::uint64_t end;
    Value value;
  };
  using Map = std::map<std::uint64_t, Rest>;

 public:
  /// first: where it begins; second.end, second.value. Valid until it is removed.
  using Range = typename Map::iterator;

  /// The new range and true, or one that shares a byte with it and false: nothing is added then.
  std::pair<Range, bool> add(std::uint64_t begin, std::uint64_t end, Value value = {}) {
    const Range next = map_.lower_bound(begin);
    if (next != map_.end() && next->first < end) return {next, false};
    if (next != map_.begin() && std::prev(next)->second.end > begin) return {std::prev(next), false};
    if (unused_.empty()) return {map_.emplace_hint(next, begin, Rest{end, std::move(value)}), true};
    typename Map::node_type node = std::move(unused_.back());
    unused_.pop_back();
    node.key() = begin;
    node.mapped() = {end, std::move(value)};
    return {map_.insert(next, std::move(node)), true};
  }

  void remove(Range range) { unused_.push_back(map_.extract(range)); }
  /// The one that begins there, where there is one.
  void remove(std::uint64_t begin) {
    if (const Range range = map_.find(begin); range != map_.end()) remove(range);
  }
  void clear() { map_.clear(); }

  /// What one that shares a byte with [begin, end) is used by; null: none does.
  const Value* overlapping(std::uint64_t begin, std::uint64_t end) const {
    const auto next = map_.lower_bound(begin);
    if (next != map_.end() && next->first < end) return &next->second.value;
    if (next != map_.begin() && std::prev(next)->second.end > begin) return &std::prev(next)->second.value;
    return nullptr;
  }

 private:
  Map map_;
  std::vector<typename Map::node_type> unused_;  ///< nodes to use again: ranges come and go at every event
};

}  // namespace tenon
