// IdMap: from 64-bit names (ids, addresses) to 32-bit values; open addressing, no allocation per entry.
// By hand: an entry takes sixteen bytes, with tsl::robin_map twenty-four; a history may name a hundred million ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::replay {

/// Keys may be anything but kEmpty and kErased. Erasing leaves tombstones that the next growth sweeps.
class IdMap {
 public:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static constexpr std::uint64_t kErased = ~std::uint64_t{0} - 1;

  /// The value of `key`, or null.
  std::uint32_t* find(std::uint64_t key) {
    if (entries_.empty()) return nullptr;
    for (std::size_t i = home(key);; i = (i + 1) & mask_) {
      if (entries_[i].key == key) return &entries_[i].value;
      if (entries_[i].key == kEmpty) return nullptr;
    }
  }
  /// Adds a key that is not there.
  void insert(std::uint64_t key, std::uint32_t value) {
    if ((used_ + 1) * 10 >= entries_.size() * 7) grow();
    std::size_t i = home(key);
    while (entries_[i].key != kEmpty && entries_[i].key != kErased) i = (i + 1) & mask_;
    if (entries_[i].key == kEmpty) ++used_;
    entries_[i] = {key, value};
    ++size_;
  }
  bool erase(std::uint64_t key) {
    std::uint32_t* value = find(key);
    if (value == nullptr) return false;
    reinterpret_cast<Entry*>(reinterpret_cast<char*>(value) - offsetof(Entry, value))->key = kErased;
    --size_;
    return true;
  }
  std::size_t size() const { return size_; }
  template <class F>
  void for_each(F&& visit) const {
    for (const Entry& entry : entries_) {
      if (entry.key != kEmpty && entry.key != kErased) visit(entry.key, entry.value);
    }
  }

 private:
  struct Entry {
    std::uint64_t key = kEmpty;
    std::uint32_t value = 0;
  };
  std::size_t home(std::uint64_t key) const {
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(key >> 29) & mask_;
  }
  void grow() {
    std::vector<Entry> old(size_ * 4 < 64 ? 64 : capacity_for(size_ * 3));
    old.swap(entries_);
    mask_ = entries_.size() - 1;
    used_ = size_ = 0;
    for (const Entry& entry : old) {
      if (entry.key != kEmpty && entry.key != kErased) insert(entry.key, entry.value);
    }
  }
  static std::size_t capacity_for(std::size_t wanted) {
    std::size_t capacity = 64;
    while (capacity < wanted) capacity *= 2;
    return capacity;
  }

  std::vector<Entry> entries_;
  std::size_t mask_ = 0;
  std::size_t used_ = 0;
  std::size_t size_ = 0;
};

}  // namespace tenon::replay
