// OrderedDict: a map that keeps the order of insertion, as parameters and submodules need it (libtorch: OrderedDict).
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/streamed_text.h>

#include <cstddef>
#include <initializer_list>
#include <ostream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon {

/// Keys are unique; `key_description` is the word for a key in messages ("Parameter 'weight' already defined").
template <class Key, class Value>
class OrderedDict {
 public:
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    Value& operator*() { return pair_.second; }
    const Value& operator*() const { return pair_.second; }
    Value* operator->() { return &pair_.second; }
    const Value* operator->() const { return &pair_.second; }
    /// The key, which never changes.
    const Key& key() const noexcept { return pair_.first; }
    /// The value, for reading or for writing.
    Value& value() noexcept { return pair_.second; }
    const Value& value() const noexcept { return pair_.second; }
    /// Key and value as a std::pair.
    const std::pair<Key, Value>& pair() const noexcept { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };

  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;

  explicit OrderedDict(std::string key_description = "Key") : key_description_(std::move(key_description)) {}
  OrderedDict(std::initializer_list<Item> items) : OrderedDict("Key") {
    for (const Item& item : items) insert(item.key(), item.value());
  }

  /// What messages call a key ("Parameter", "Key" …).
  const std::string& key_description() const noexcept { return key_description_; }

  /// The first item. Throws Error where the dict is empty.
  Item& front() { return at_end(items_.empty() ? nullptr : &items_.front(), "front()"); }
  const Item& front() const { return const_cast<OrderedDict*>(this)->front(); }
  /// The last item. Throws Error where the dict is empty.
  Item& back() { return at_end(items_.empty() ? nullptr : &items_.back(), "back()"); }
  const Item& back() const { return const_cast<OrderedDict*>(this)->back(); }

  Item& operator[](std::size_t index) {
    if (index >= items_.size()) throw IndexError("Index " + std::to_string(index) + " is out of bounds");
    return items_[index];
  }
  const Item& operator[](std::size_t index) const { return const_cast<OrderedDict&>(*this)[index]; }
  /// Throws Error for a key that is not there.
  Value& operator[](const Key& key) {
    if (Value* value = find(key)) return *value;
    throw Error(key_description_ + " '" + text(key) + "' is not defined");
  }
  const Value& operator[](const Key& key) const { return const_cast<OrderedDict&>(*this)[key]; }

  /// Throws Error for a key that is there already.
  template <class K, class V>
  Value& insert(K&& key, V&& value) {
    return insert_item(Key(std::forward<K>(key)), Value(std::forward<V>(value)));
  }
  Value& insert(Key key, Value&& value) { return insert_item(std::move(key), std::move(value)); }

  /// Inserts every item of the other dict. Throws Error for a key that is taken; the items before it are then in.
  void update(OrderedDict&& other) {
    reserve(size() + other.size());
    for (Item& item : other) insert_item(item.key(), std::move(item.value()));
  }
  void update(const OrderedDict& other) {
    reserve(size() + other.size());
    for (const Item& item : other) insert_item(item.key(), item.value());
  }

  /// Removes the item with this key; those behind it move up. Throws Error where there is none.
  void erase(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) throw Error(key_description_ + " '" + text(key) + "' doesn't exist");
    const std::size_t position = found->second;
    index_.erase(found);
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(position));
    for (auto& [other, other_position] : index_) {
      if (other_position > position) --other_position;
    }
  }
  /// Removes every item.
  void clear() {
    index_.clear();
    items_.clear();
  }
  /// Makes room for this many items in all: until there are more, insert() moves none.
  void reserve(std::size_t capacity) {
    index_.reserve(capacity);
    items_.reserve(capacity);
  }

  /// Null for a key that is not there.
  Value* find(const Key& key) noexcept {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &items_[found->second].value();
  }
  const Value* find(const Key& key) const noexcept { return const_cast<OrderedDict*>(this)->find(key); }
  /// Whether there is an item with this key.
  bool contains(const Key& key) const noexcept { return index_.find(key) != index_.end(); }

  /// Iterates over the items in the order of insertion.
  Iterator begin() { return items_.begin(); }
  ConstIterator begin() const { return items_.begin(); }
  /// See begin().
  Iterator end() { return items_.end(); }
  ConstIterator end() const { return items_.end(); }
  /// The number of items.
  std::size_t size() const noexcept { return items_.size(); }
  /// Whether there are no items.
  bool is_empty() const noexcept { return items_.empty(); }

  /// The items in the order of insertion.
  const std::vector<Item>& items() const noexcept { return items_; }
  /// The keys in the order of insertion.
  std::vector<Key> keys() const {
    std::vector<Key> keys;
    keys.reserve(size());
    for (const Item& item : items_) keys.push_back(item.key());
    return keys;
  }
  /// The values in the order of insertion.
  std::vector<Value> values() const {
    std::vector<Value> values;
    values.reserve(size());
    for (const Item& item : items_) values.push_back(item.value());
    return values;
  }
  /// Copies of the items as std::pairs, in the order of insertion.
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> pairs;
    pairs.reserve(size());
    for (const Item& item : items_) pairs.push_back(item.pair());
    return pairs;
  }

  template <class K, class V>
  friend bool operator==(const OrderedDict<K, V>& a, const OrderedDict<K, V>& b);

 private:
  static std::string text(const Key& key) {
    return streamed_text([&key](std::ostream& stream) { stream << key; });
  }
  static Item& at_end(Item* item, const char* name) {
    if (item == nullptr) throw Error(std::string("Called ") + name + " on an empty OrderedDict");
    return *item;
  }
  Value& insert_item(Key key, Value value) {
    if (contains(key)) throw Error(key_description_ + " '" + text(key) + "' already defined");
    index_.emplace(key, items_.size());
    items_.emplace_back(std::move(key), std::move(value));
    return items_.back().value();
  }

  std::unordered_map<Key, std::size_t> index_;
  std::vector<Item> items_;
  std::string key_description_{"Key"};
};

template <class K, class V>
bool operator==(const OrderedDict<K, V>& a, const OrderedDict<K, V>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a.items_[i].key() != b.items_[i].key() || !(a.items_[i].value() == b.items_[i].value())) return false;
  }
  return true;
}

}  // namespace tenon
