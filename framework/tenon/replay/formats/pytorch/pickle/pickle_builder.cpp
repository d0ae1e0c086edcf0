// The arrays behind a Pickle, and what in them is kept once.
#include <tenon/replay/formats/pytorch/pickle/pickle_builder.h>

#include <algorithm>
#include <cstring>

namespace tenon::replay {

using Kind = PickleValue::Kind;

PickleValue PickleBuilder::integer(std::int64_t value) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 59;
  if (value >= 0 && value < kLimit) return PickleValue::make(Kind::kInt, static_cast<std::uint64_t>(value));
  return wide(value, false);
}

PickleValue PickleBuilder::wide(std::int64_t value, bool is_unsigned) {
  out_.wide_.push_back(value);
  out_.wide_is_unsigned_.push_back(is_unsigned);
  return PickleValue::make(Kind::kWide, out_.wide_.size() - 1);
}

PickleValue PickleBuilder::real(double value) {
  out_.reals_.push_back(value);
  return PickleValue::make(Kind::kReal, out_.reals_.size() - 1);
}

PickleValue PickleBuilder::text(std::string_view text) {
  if ((out_.texts_.size() + 1) * 2 > out_.text_table_.size()) grow_text_table();
  const std::size_t mask = out_.text_table_.size() - 1;
  std::size_t i = Pickle::hash(text) & mask;
  for (; out_.text_table_[i] != Pickle::kNone; i = (i + 1) & mask) {
    const Pickle::TextRange& range = out_.texts_[out_.text_table_[i]];
    if (range.size == text.size() &&
        std::memcmp(out_.text_bytes_.data() + range.begin, text.data(), text.size()) == 0) {
      return PickleValue::make(Kind::kText, out_.text_table_[i]);
    }
  }
  const auto id = static_cast<std::uint32_t>(out_.texts_.size());
  out_.texts_.push_back({out_.text_bytes_.size(), static_cast<std::uint32_t>(text.size())});
  out_.text_bytes_.append(text);
  out_.text_table_[i] = id;
  return PickleValue::make(Kind::kText, id);
}

void PickleBuilder::grow_text_table() {
  out_.text_table_.assign(std::max<std::size_t>(64, out_.text_table_.size() * 2), Pickle::kNone);
  const std::size_t mask = out_.text_table_.size() - 1;
  for (std::uint32_t id = 0; id < out_.texts_.size(); ++id) {
    const Pickle::TextRange& range = out_.texts_[id];
    std::size_t i = Pickle::hash(std::string_view(out_.text_bytes_).substr(range.begin, range.size)) & mask;
    while (out_.text_table_[i] != Pickle::kNone) i = (i + 1) & mask;
    out_.text_table_[i] = id;
  }
}

std::uint32_t PickleBuilder::new_node() {
  if (out_.nodes_.size() >= Pickle::kNone) fail("more than 4294967294 containers");
  out_.nodes_.push_back({});
  return static_cast<std::uint32_t>(out_.nodes_.size() - 1);
}

Pickle::Node& PickleBuilder::open_node(PickleValue container, std::uint64_t more) {
  Pickle::Node& node = out_.nodes_[container.payload()];
  if (node.memo == Pickle::kComplete) fail("adds to a list or dict that was complete: no pickle is written like this");
  if (more >= Pickle::kNone - node.count) fail("more than 4294967294 values in a container");
  node.count += static_cast<std::uint32_t>(more);
  return node;
}
void PickleBuilder::add_piece(std::uint64_t node, std::uint64_t count, std::uint32_t shape) {
  if (out_.pieces_.size() >= Pickle::kNone) fail("more than 4294967294 additions to containers");
  const auto piece = static_cast<std::uint32_t>(out_.pieces_.size());
  out_.pieces_.push_back({out_.words_.size() - count, static_cast<std::uint32_t>(count), Pickle::kNone, shape});
  Pickle::Node& target = out_.nodes_[node];
  (target.first == Pickle::kNone ? target.first : out_.pieces_[target.last].next) = piece;
  target.last = piece;
}

PickleValue PickleBuilder::tuple(std::span<const PickleValue> values) {
  const PickleValue tuple = container(Kind::kTuple);
  open_node(tuple, values.size());
  out_.words_.append(values.data(), values.size());
  out_.words_read_ += values.size();
  if (!values.empty()) add_piece(tuple.payload(), values.size(), Pickle::kNone);
  return tuple;
}

void PickleBuilder::append(PickleValue list, std::span<const PickleValue> values) {
  Pickle::Node& node = open_node(list, values.size());
  const bool continues = node.last != Pickle::kNone &&
                         out_.pieces_[node.last].begin + out_.pieces_[node.last].count == out_.words_.size() &&
                         out_.pieces_[node.last].count + values.size() < Pickle::kNone;
  out_.words_.append(values.data(), values.size());
  out_.words_read_ += values.size();
  if (continues) {
    out_.pieces_[node.last].count += static_cast<std::uint32_t>(values.size());
  } else if (!values.empty()) {
    add_piece(list.payload(), values.size(), Pickle::kNone);
  }
}

void PickleBuilder::set_items(PickleValue dict, std::span<const PickleValue> items) {
  if (items.size() % 2 != 0) fail("a key without a value");
  open_node(dict, items.size() / 2);
  keys_.clear();
  for (std::size_t i = 0; i < items.size(); i += 2) {
    const bool is_text = items[i].kind() == Kind::kText;
    if (items[i].kind() == Kind::kList || items[i].kind() == Kind::kDict) fail("a list or dict as a key");
    keys_.push_back(is_text ? static_cast<std::uint32_t>(items[i].payload()) : Pickle::kNone);
    out_.words_.push_back(items[i + 1]);
  }
  out_.words_read_ += items.size() / 2;
  if (!items.empty()) add_piece(dict.payload(), items.size() / 2, shape_of(keys_));
}

std::uint32_t PickleBuilder::shape_of(const std::vector<std::uint32_t>& keys) {
  // Entries of one kind follow each other, so the last shape is the likely one.
  if (last_shape_ != Pickle::kNone && out_.shapes_[last_shape_] == keys) return last_shape_;
  std::uint64_t hash = keys.size();
  for (const std::uint32_t key : keys) hash = (hash ^ key) * 0x9e3779b97f4a7c15u + (hash >> 29);
  std::vector<std::uint32_t>& bucket = shape_ids_[hash];
  for (const std::uint32_t id : bucket) {
    if (out_.shapes_[id] == keys) return last_shape_ = id;
  }
  out_.shapes_.push_back(keys);
  bucket.push_back(static_cast<std::uint32_t>(out_.shapes_.size() - 1));
  return last_shape_ = bucket.back();
}

void PickleBuilder::memoised(PickleValue value, std::uint64_t index, bool may_settle) {
  std::uint32_t& memo = out_.nodes_[value.payload()].memo;
  if (memo == Pickle::kNone && may_settle && index < Pickle::kComplete) {
    memo = static_cast<std::uint32_t>(index);
  } else if (memo != Pickle::kComplete) {
    memo = Pickle::kManyNames;
  }
}

void PickleBuilder::recalled(PickleValue value) {
  std::uint32_t& memo = out_.nodes_[value.payload()].memo;
  if (memo != Pickle::kComplete) memo = Pickle::kManyNames;
}

std::uint64_t PickleBuilder::memo_of(PickleValue value) const {
  const std::uint32_t memo = out_.nodes_[value.payload()].memo;
  return memo < Pickle::kComplete ? memo : ~std::uint64_t{0};
}

PickleBuilder::Settling& PickleBuilder::settling_of(const Pickle::Node& node) {
  const std::uint32_t shape = out_.pieces_[node.first].shape;
  if (shape == Pickle::kNone) return list_settling_;
  if (shape >= shape_settling_.size()) shape_settling_.resize(shape + 1);
  return shape_settling_[shape];
}

// The space of a container stands at the end of every array as long as nothing came after it.
PickleValue PickleBuilder::settle(PickleValue value) {
  Pickle::Node& node = out_.nodes_[value.payload()];
  if (node.count == 0 || node.count > kMaxSettled || node.first != node.last || node.memo == Pickle::kManyNames ||
      value.payload() + 1 != out_.nodes_.size() || node.first + 1 != out_.pieces_.size()) {
    return value;
  }
  Settling& kind = settling_of(node);
  if (!kind.is_worth_it()) return value;
  ++kind.tried;
  if ((settled_ + 1) * 2 > settled_table_.size()) grow_settled_table();
  const std::size_t mask = settled_table_.size() - 1;
  std::size_t i = hash_node(node) & mask;
  for (; settled_table_[i] != Pickle::kNone; i = (i + 1) & mask) {
    const std::uint32_t known = settled_table_[i];
    if (!are_equal(out_.nodes_[known], node)) continue;
    ++kind.found;
    out_.words_.shrink(out_.words_.size() - node.count);
    out_.pieces_.shrink(out_.pieces_.size() - 1);
    out_.nodes_.shrink(out_.nodes_.size() - 1);
    return PickleValue::make(value.kind(), known);
  }
  settled_table_[i] = static_cast<std::uint32_t>(value.payload());
  ++settled_;
  node.memo = Pickle::kComplete;
  return value;
}

const PickleValue* PickleBuilder::words_of(const Pickle::Node& node) const {
  return out_.words_.data() + out_.pieces_[node.first].begin;
}

bool PickleBuilder::are_equal(const Pickle::Node& a, const Pickle::Node& b) const {
  return a.count == b.count && out_.pieces_[a.first].shape == out_.pieces_[b.first].shape &&
         std::memcmp(words_of(a), words_of(b), a.count * sizeof(PickleValue)) == 0;
}

std::size_t PickleBuilder::hash_node(const Pickle::Node& node) const {
  std::uint64_t hash = out_.pieces_[node.first].shape * std::uint64_t{0xff51afd7ed558ccd} + node.count;
  const PickleValue* const words = words_of(node);
  for (std::uint32_t i = 0; i < node.count; ++i) {
    hash = (hash ^ words[i].word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

void PickleBuilder::grow_settled_table() {
  std::vector<std::uint32_t> old(std::max<std::size_t>(1024, settled_table_.size() * 2), Pickle::kNone);
  old.swap(settled_table_);
  const std::size_t mask = settled_table_.size() - 1;
  for (const std::uint32_t id : old) {
    if (id == Pickle::kNone) continue;
    std::size_t i = hash_node(out_.nodes_[id]) & mask;
    while (settled_table_[i] != Pickle::kNone) i = (i + 1) & mask;
    settled_table_[i] = id;
  }
}

}  // namespace tenon::replay
