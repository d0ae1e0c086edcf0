// What the pickle machine builds: containers in few arrays. A text, the keys of a dict, and small containers of equal
// content are kept once.
#pragma once

#include <tenon/replay/formats/io/input_file.h>
#include <tenon/replay/formats/pytorch/pickle/pickle.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::replay {

class PickleBuilder {
 public:
  PickleBuilder(const InputFile& input, Pickle& out) : input_(input), out_(out) {}

  /// Of the operator that is executed: complaints name it.
  std::uint64_t op_offset = 0;
  [[noreturn]] void fail(const std::string& reason) const { input_.fail_at(op_offset, reason); }

  PickleValue integer(std::int64_t value);
  /// 2^63 to 2^64 - 1, given as the signed number of the same bits.
  PickleValue unsigned_integer(std::int64_t bits) { return wide(bits, true); }
  PickleValue real(double value);
  PickleValue text(std::string_view text);
  /// An empty list or dict.
  PickleValue container(PickleValue::Kind kind) { return PickleValue::make(kind, new_node()); }
  PickleValue tuple(std::span<const PickleValue> values);

  /// The values of one APPEND or APPENDS.
  void append(PickleValue list, std::span<const PickleValue> values);
  /// The keys and values, in turn, of one SETITEM or SETITEMS.
  void set_items(PickleValue dict, std::span<const PickleValue> items);

  /// `value` is memoised at `index`; with may_settle, that is the one place where it is.
  void memoised(PickleValue value, std::uint64_t index, bool may_settle);
  /// `value` was recalled from the memo: somebody else may hold it.
  void recalled(PickleValue value);
  /// Where a container is memoised, if that is one place only; ~0 otherwise.
  std::uint64_t memo_of(PickleValue value) const;

  /// A container that picklers write no more to. The equal one that is there already, whose place this one's space then
  /// is given back for; itself if there is none.
  PickleValue settle(PickleValue value);

  std::size_t containers() const { return out_.nodes_.size(); }

 private:
  /// How often containers of one kind turned out to be there already.
  struct Settling {
    std::uint64_t tried = 0;
    std::uint64_t found = 0;
    bool is_worth_it() const { return tried < 1000 || found * 8 > tried; }
  };
  static constexpr std::uint32_t kMaxSettled = 256;

  PickleValue wide(std::int64_t value, bool is_unsigned);
  std::uint32_t new_node();
  Pickle::Node& open_node(PickleValue container, std::uint64_t more);
  void add_piece(std::uint64_t node, std::uint64_t count, std::uint32_t shape);
  std::uint32_t shape_of(const std::vector<std::uint32_t>& keys);
  Settling& settling_of(const Pickle::Node& node);
  void grow_text_table();
  const PickleValue* words_of(const Pickle::Node& node) const;
  bool are_equal(const Pickle::Node& a, const Pickle::Node& b) const;
  std::size_t hash_node(const Pickle::Node& node) const;
  void grow_settled_table();

  const InputFile& input_;
  Pickle& out_;
  std::vector<std::uint32_t> keys_;
  std::uint32_t last_shape_ = Pickle::kNone;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> shape_ids_;
  std::vector<std::uint32_t> settled_table_;  ///< open addressing over complete nodes, by content
  std::uint64_t settled_ = 0;
  Settling list_settling_;
  std::vector<Settling> shape_settling_;
};

}  // namespace tenon::replay
