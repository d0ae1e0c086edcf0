// The pickle machine. Operators that could run code (GLOBAL, REDUCE, …) are refused by name and offset.
#include <tenon/core/units.h>
#include <tenon/replay/pickle.h>
#include <tenon/replay/trace.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace tenon::replay {

namespace {

using Kind = PickleValue::Kind;

std::uint64_t hash_bytes(std::string_view text) {
  std::uint64_t hash = 0x9e3779b97f4a7c15u ^ text.size();
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash ^ (hash >> 31);
}

/// Why an operator is refused; null for one that is not known at all.
const char* refusal(int op) {
  switch (op) {
    case 'c':
      return "GLOBAL could run code";
    case 0x93:
      return "STACK_GLOBAL could run code";
    case 'R':
      return "REDUCE could run code";
    case 'b':
      return "BUILD could run code";
    case 'i':
      return "INST could run code";
    case 'o':
      return "OBJ could run code";
    case 0x81:
      return "NEWOBJ could run code";
    case 0x92:
      return "NEWOBJ_EX could run code";
    case 0x82:
    case 0x83:
    case 0x84:
      return "EXT could run code";
    case 'P':
    case 'Q':
      return "PERSID asks for an object from outside";
    case 0x97:
    case 0x98:
      return "an out-of-band buffer is not in the file";
    case 0x8f:
    case 0x90:
    case 0x91:
      return "a set does not occur in a memory snapshot";
    case 'I':
    case 'L':
    case 'F':
    case 'S':
    case 'V':
    case 'd':
    case 'l':
    case 'g':
    case 'p':
      return "an operator of protocol 0 or 1; protocols 2 to 5 are read";
    default:
      return nullptr;
  }
}

}  // namespace

class PickleMachine {
 public:
  PickleMachine(InputFile& input, Pickle& out) : input_(input), out_(out) {}

  void run() {
    if (byte() != 0x80) fail("not a pickle of protocol 2 or later: the PROTO operator is missing");
    out_.protocol_ = byte();
    if (out_.protocol_ < 2 || out_.protocol_ > 5)
      fail("pickle protocol " + std::to_string(out_.protocol_) + "; 2 to 5 are read");
    for (std::uint64_t steps = 1; step(); ++steps) {
      if (steps % kStepsBetweenChecks == 0) check_density();
    }
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { input_.fail_at(op_offset_, reason); }

  // One byte can make a container of some thirty: a file of nothing else is refused, so that memory stays a small
  // multiple of what was read. Real snapshots have a container in 30 bytes at most, and less on the stack.
  static constexpr std::uint64_t kStepsBetweenChecks = 1 << 16;
  static constexpr std::uint64_t kFreeValues = 1 << 20;
  void check_density() const {
    const std::uint64_t most = kFreeValues + input_.position() / 8;
    if (out_.nodes_.size() <= most && stack_.size() <= most) return;
    fail(std::to_string(std::max<std::size_t>(out_.nodes_.size(), stack_.size())) + " open values in " +
         std::to_string(input_.position()) + " bytes: no snapshot is as dense, refused to keep memory bounded");
  }

  int byte() {
    const int value = input_.get();
    if (value < 0) input_.fail_at(input_.position(), "the pickle is truncated");
    return value;
  }
  template <class T>
  T little() {
    T value{};
    if (!input_.read(&value, sizeof(T))) input_.fail_at(input_.position(), "the pickle is truncated");
    return value;  // every machine that Tenon runs on is little-endian
  }
  static_assert(std::endian::native == std::endian::little);

  void push(PickleValue value) { stack_.push_back(value); }
  void push_int(std::int64_t value) {
    constexpr std::int64_t kLimit = std::int64_t{1} << 59;
    if (value >= 0 && value < kLimit) return push(PickleValue::make(Kind::kInt, static_cast<std::uint64_t>(value)));
    push_wide(value, false);
  }
  void push_wide(std::int64_t value, bool is_unsigned) {
    push(PickleValue::make(Kind::kWide, out_.wide_.size()));
    out_.wide_.push_back(value);
    out_.wide_is_unsigned_.push_back(is_unsigned);
  }
  std::uint32_t new_node() {
    if (out_.nodes_.size() >= Pickle::kNone) fail("more than 4294967294 containers");
    out_.nodes_.push_back({});
    return static_cast<std::uint32_t>(out_.nodes_.size() - 1);
  }
  std::size_t floor() const { return marks_.size() == 0 ? 0 : marks_[marks_.size() - 1]; }
  PickleValue pop() {
    if (stack_.size() <= floor()) fail("takes a value from an empty stack");
    const PickleValue value = stack_.back();
    stack_.shrink(stack_.size() - 1);
    return value;
  }
  std::size_t pop_mark() {
    if (marks_.size() == 0) fail("no MARK for this operator");
    const std::size_t mark = marks_.back();
    marks_.shrink(marks_.size() - 1);
    return mark;
  }

  void long_bytes(std::uint64_t count) {
    if (count > 8 * KiB) fail("an integer of " + std::to_string(count) + " bytes");
    std::uint8_t bytes[8 * KiB];
    if (!input_.read(bytes, count)) input_.fail_at(input_.position(), "the pickle is truncated");
    const bool negative = count != 0 && (bytes[count - 1] & 0x80) != 0;
    const std::uint8_t filler = negative ? 0xff : 0x00;
    while (count > 9 && bytes[count - 1] == filler) --count;
    const bool extra_is_sign = count == 9 && bytes[8] == filler;
    if (count > 9 || (count == 9 && !extra_is_sign)) return push(PickleValue::make(Kind::kTooBig));
    std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
    std::memcpy(&value, bytes, std::min<std::uint64_t>(count, 8));
    const auto as_signed = static_cast<std::int64_t>(value);
    if (count == 9 && negative && as_signed >= 0) return push(PickleValue::make(Kind::kTooBig));
    if (count == 9 && !negative && as_signed < 0) return push_wide(as_signed, true);  // 2^63 … 2^64-1
    push_int(as_signed);
  }

  void text(std::uint64_t count) {
    if (count > 64 * MiB) fail("a text of " + std::to_string(count) + " bytes");
    scratch_.clear();
    while (scratch_.size() < count) {  // piece by piece: a lying length costs no memory
      const std::string_view piece = input_.available().substr(0, count - scratch_.size());
      if (piece.empty()) input_.fail_at(input_.position(), "the pickle is truncated");
      scratch_.append(piece);
      input_.consume(piece.size());
    }
    push(PickleValue::make(Kind::kText, intern(scratch_)));
  }
  std::uint32_t intern(std::string_view text) {
    if ((out_.texts_.size() + 1) * 2 > out_.text_table_.size()) grow_text_table();
    const std::size_t mask = out_.text_table_.size() - 1;
    std::size_t i = hash_bytes(text) & mask;
    for (; out_.text_table_[i] != Pickle::kNone; i = (i + 1) & mask) {
      const Pickle::TextRange& range = out_.texts_[out_.text_table_[i]];
      if (range.size == text.size() &&
          std::memcmp(out_.text_bytes_.data() + range.begin, text.data(), text.size()) == 0) {
        return out_.text_table_[i];
      }
    }
    const auto id = static_cast<std::uint32_t>(out_.texts_.size());
    out_.texts_.push_back({out_.text_bytes_.size(), static_cast<std::uint32_t>(text.size())});
    out_.text_bytes_.append(text);
    out_.text_table_[i] = id;
    return id;
  }
  void grow_text_table() {
    out_.text_table_.assign(std::max<std::size_t>(64, out_.text_table_.size() * 2), Pickle::kNone);
    const std::size_t mask = out_.text_table_.size() - 1;
    for (std::uint32_t id = 0; id < out_.texts_.size(); ++id) {
      const Pickle::TextRange& range = out_.texts_[id];
      std::size_t i = hash_bytes(std::string_view(out_.text_bytes_).substr(range.begin, range.size)) & mask;
      while (out_.text_table_[i] != Pickle::kNone) i = (i + 1) & mask;
      out_.text_table_[i] = id;
    }
  }

  void add_piece(std::uint64_t node, std::uint64_t count, std::uint32_t shape) {
    if (out_.pieces_.size() >= Pickle::kNone) fail("more than 4294967294 additions to containers");
    const auto piece = static_cast<std::uint32_t>(out_.pieces_.size());
    out_.pieces_.push_back({out_.words_.size() - count, static_cast<std::uint32_t>(count), Pickle::kNone, shape});
    Pickle::Node& target = out_.nodes_[node];
    (target.first == Pickle::kNone ? target.first : out_.pieces_[target.last].next) = piece;
    target.last = piece;
  }

  Pickle::Node& open_node(PickleValue container, std::uint64_t more) {
    Pickle::Node& node = out_.nodes_[container.payload()];
    if (node.memo == Pickle::kComplete)
      fail("adds to a list or dict that was complete: no pickle is written like this");
    if (more >= Pickle::kNone - node.count) fail("more than 4294967294 values in a container");
    node.count += static_cast<std::uint32_t>(more);
    return node;
  }
  /// The values from `from` on leave the stack for the end of words_.
  void move_words(std::size_t from) {
    const std::size_t count = stack_.size() - from;
    out_.words_.append(stack_.data() + from, count);
    out_.words_read_ += count;
  }

  void append(std::size_t from, bool is_batch) {
    if (from == floor()) fail("appends to nothing");
    const PickleValue list = stack_[from - 1];
    if (list.kind() != Kind::kList) fail("appends to something that is no list");
    const std::size_t count = stack_.size() - from;
    Pickle::Node& node = open_node(list, count);
    const bool continues = node.last != Pickle::kNone &&
                           out_.pieces_[node.last].begin + out_.pieces_[node.last].count == out_.words_.size() &&
                           out_.pieces_[node.last].count + count < Pickle::kNone;
    move_words(from);
    if (continues) {
      out_.pieces_[node.last].count += static_cast<std::uint32_t>(count);
    } else if (count != 0) {
      add_piece(list.payload(), count, Pickle::kNone);
    }
    stack_.shrink(from);
    if (is_batch) settle(list_settling_);
  }

  void set_items(std::size_t from, bool is_batch) {
    if (from == floor()) fail("sets an item of nothing");
    const PickleValue dict = stack_[from - 1];
    if (dict.kind() != Kind::kDict) fail("sets an item of something that is no dict");
    const std::size_t count = stack_.size() - from;
    if (count % 2 != 0) fail("a key without a value");
    open_node(dict, count / 2);
    keys_.clear();
    for (std::size_t i = from; i < stack_.size(); i += 2) {
      const bool is_text = stack_[i].kind() == Kind::kText;
      if (stack_[i].kind() == Kind::kList || stack_[i].kind() == Kind::kDict) fail("a list or dict as a key");
      keys_.push_back(is_text ? static_cast<std::uint32_t>(stack_[i].payload()) : Pickle::kNone);
      out_.words_.push_back(stack_[i + 1]);
    }
    out_.words_read_ += count / 2;
    stack_.shrink(from);
    if (count == 0) return;
    const std::uint32_t shape = shape_of(keys_);
    add_piece(dict.payload(), count / 2, shape);
    if (shape >= shape_settling_.size()) shape_settling_.resize(shape + 1);
    if (is_batch) settle(shape_settling_[shape]);
  }

  /// How often containers of one kind turned out to be there already.
  struct Settling {
    std::uint64_t tried = 0;
    std::uint64_t found = 0;
    bool is_worth_it() const { return tried < 1000 || found * 8 > tried; }
  };
  static constexpr std::uint32_t kMaxSettled = 256;

  /// The container on top of the stack is complete, as far as picklers go. If an equal one is there, that one takes its
  /// place, and what this one took is given back: it stands at the end of every array then.
  void settle(Settling& kind) {
    PickleValue& value = stack_.back();
    Pickle::Node& node = out_.nodes_[value.payload()];
    if (!kind.is_worth_it() || node.count == 0 || node.count > kMaxSettled || node.first != node.last ||
        node.memo == Pickle::kManyNames || value.payload() + 1 != out_.nodes_.size() ||
        node.first + 1 != out_.pieces_.size()) {
      return;
    }
    ++kind.tried;
    if ((settled_ + 1) * 2 > settled_table_.size()) grow_settled_table();
    const std::size_t mask = settled_table_.size() - 1;
    std::size_t i = hash_node(node) & mask;
    for (; settled_table_[i] != Pickle::kNone; i = (i + 1) & mask) {
      const std::uint32_t known = settled_table_[i];
      if (!are_equal(out_.nodes_[known], node)) continue;
      ++kind.found;
      const PickleValue own = std::exchange(value, PickleValue::make(value.kind(), known));
      if (node.memo != Pickle::kNone && memo_[node.memo] == own) memo_[node.memo] = value;
      out_.words_.shrink(out_.words_.size() - node.count);
      out_.pieces_.shrink(out_.pieces_.size() - 1);
      out_.nodes_.shrink(out_.nodes_.size() - 1);
      return;
    }
    settled_table_[i] = static_cast<std::uint32_t>(value.payload());
    ++settled_;
    node.memo = Pickle::kComplete;
  }
  const PickleValue* words_of(const Pickle::Node& node) const {
    return out_.words_.data() + out_.pieces_[node.first].begin;
  }
  bool are_equal(const Pickle::Node& a, const Pickle::Node& b) const {
    return a.count == b.count && out_.pieces_[a.first].shape == out_.pieces_[b.first].shape &&
           std::memcmp(words_of(a), words_of(b), a.count * sizeof(PickleValue)) == 0;
  }
  std::size_t hash_node(const Pickle::Node& node) const {
    std::uint64_t hash = out_.pieces_[node.first].shape * std::uint64_t{0xff51afd7ed558ccd} + node.count;
    const PickleValue* const words = words_of(node);
    for (std::uint32_t i = 0; i < node.count; ++i) {
      hash = (hash ^ words[i].word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return static_cast<std::size_t>(hash ^ (hash >> 32));
  }
  void grow_settled_table() {
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

  std::uint32_t shape_of(const std::vector<std::uint32_t>& keys) {
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

  void tuple(std::size_t from) {
    const std::size_t count = stack_.size() - from;
    const std::uint32_t node = new_node();
    open_node(PickleValue::make(Kind::kTuple, node), count);
    move_words(from);
    if (count != 0) add_piece(node, count, Pickle::kNone);
    stack_.shrink(from);
    push(PickleValue::make(Kind::kTuple, node));
    settle(list_settling_);
  }
  void tuple_of(std::size_t count) {
    if (stack_.size() < floor() + count) fail("takes a value from an empty stack");
    tuple(stack_.size() - count);
  }

  static bool is_container(PickleValue value) { return value.kind() >= Kind::kList; }

  void put(std::uint64_t index) {
    if (stack_.size() <= floor()) fail("memoises an empty stack");
    const PickleValue value = stack_.back();
    if (is_container(value)) {
      std::uint32_t& memo = out_.nodes_[value.payload()].memo;
      if (memo == Pickle::kNone && index <= memo_.size() && index < Pickle::kComplete) {
        memo = static_cast<std::uint32_t>(index);
      } else if (memo != Pickle::kComplete) {
        memo = Pickle::kManyNames;
      }
    }
    if (index == memo_.size()) {
      memo_.push_back(value);
    } else if (index < memo_.size()) {
      memo_[index] = value;
    } else {
      sparse_memo_[index] = value;
    }
    ++puts_;
  }
  void get(std::uint64_t index) {
    PickleValue value;
    if (index < memo_.size()) {
      value = memo_[index];
    } else {
      const auto found = sparse_memo_.find(index);
      if (found == sparse_memo_.end()) fail("memo entry " + std::to_string(index) + " was never set");
      value = found->second;
    }
    if (is_container(value)) {
      std::uint32_t& memo = out_.nodes_[value.payload()].memo;
      if (memo != Pickle::kComplete) memo = Pickle::kManyNames;
    }
    push(value);
  }

  bool step() {
    op_offset_ = input_.position();
    const int op = byte();
    switch (op) {
      case 0x95:
        little<std::uint64_t>();
        break;  // FRAME
      case '}':
        push(PickleValue::make(Kind::kDict, new_node()));
        break;
      case ']':
        push(PickleValue::make(Kind::kList, new_node()));
        break;
      case '(':
        marks_.push_back(stack_.size());
        break;
      case 0x8c:
        text(static_cast<std::uint64_t>(byte()));
        break;
      case 'X':
        text(little<std::uint32_t>());
        break;
      case 0x8d:
        text(little<std::uint64_t>());
        break;
      case 'U':
      case 'C':
        text(static_cast<std::uint64_t>(byte()));
        break;  // SHORT_BINSTRING, SHORT_BINBYTES
      case 'T':
      case 'B':
        text(little<std::uint32_t>());
        break;  // BINSTRING, BINBYTES
      case 0x8e:
      case 0x96:
        text(little<std::uint64_t>());
        break;  // BINBYTES8, BYTEARRAY8
      case 'K':
        push_int(byte());
        break;
      case 'M':
        push_int(little<std::uint16_t>());
        break;
      case 'J':
        push_int(little<std::int32_t>());
        break;
      case 0x8a:
        long_bytes(static_cast<std::uint64_t>(byte()));
        break;
      case 0x8b: {
        const auto count = little<std::int32_t>();
        if (count < 0) fail("an integer of a negative length");
        long_bytes(static_cast<std::uint64_t>(count));
        break;
      }
      case 'G': {
        push(PickleValue::make(Kind::kReal, out_.reals_.size()));
        out_.reals_.push_back(std::bit_cast<double>(__builtin_bswap64(little<std::uint64_t>())));
        break;
      }
      case 0x88:
        push(PickleValue::make(Kind::kTrue));
        break;
      case 0x89:
        push(PickleValue::make(Kind::kFalse));
        break;
      case 'N':
        push(PickleValue::make(Kind::kNone));
        break;
      case ')':
        tuple(stack_.size());
        break;
      case 0x85:
        tuple_of(1);
        break;
      case 0x86:
        tuple_of(2);
        break;
      case 0x87:
        tuple_of(3);
        break;
      case 't':
        tuple(pop_mark());
        break;
      case 'a':
        if (stack_.size() < floor() + 2) fail("appends to nothing");
        append(stack_.size() - 1, false);
        break;
      case 'e':
        append(pop_mark(), true);
        break;
      case 's':
        if (stack_.size() < floor() + 3) fail("sets an item of nothing");
        set_items(stack_.size() - 2, false);
        break;
      case 'u':
        set_items(pop_mark(), true);
        break;
      case 0x94:
        put(puts_);
        break;  // MEMOIZE
      case 'q':
        put(static_cast<std::uint64_t>(byte()));
        break;
      case 'r':
        put(little<std::uint32_t>());
        break;
      case 'h':
        get(static_cast<std::uint64_t>(byte()));
        break;
      case 'j':
        get(little<std::uint32_t>());
        break;
      case '0':
        pop();
        break;
      case '.':
        out_.root_ = pop();
        return false;
      default: {
        const char* const reason = refusal(op);
        char code[8];
        std::snprintf(code, sizeof code, "0x%02x", static_cast<unsigned>(op));
        fail(reason != nullptr ? std::string("operator ") + code + ": " + reason + ": refused, nothing was executed"
                               : std::string("operator ") + code + " is not one of pickle's");
      }
    }
    return true;
  }

  InputFile& input_;
  Pickle& out_;
  PodVector<PickleValue> stack_;
  PodVector<std::size_t> marks_;
  PodVector<PickleValue> memo_;
  std::unordered_map<std::uint64_t, PickleValue> sparse_memo_;
  std::uint64_t puts_ = 0;
  std::uint64_t op_offset_ = 0;
  std::string scratch_;
  std::vector<std::uint32_t> keys_;
  std::uint32_t last_shape_ = Pickle::kNone;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> shape_ids_;
  std::vector<std::uint32_t> settled_table_;  ///< open addressing over complete nodes, by content
  std::uint64_t settled_ = 0;
  Settling list_settling_;
  std::vector<Settling> shape_settling_;
};

Pickle::Pickle(InputFile& input) { PickleMachine(input, *this).run(); }

std::uint32_t Pickle::key_id(std::string_view key) const {
  if (text_table_.empty()) return kNone - 1;
  const std::size_t mask = text_table_.size() - 1;
  for (std::size_t i = hash_bytes(key) & mask; text_table_[i] != kNone; i = (i + 1) & mask) {
    const TextRange& range = texts_[text_table_[i]];
    if (std::string_view(text_bytes_).substr(range.begin, range.size) == key) return text_table_[i];
  }
  return kNone - 1;
}

PickleValue Pickle::get(PickleValue dict, std::uint32_t key) const {
  PickleValue found;
  for (std::uint32_t piece = nodes_[dict.payload()].first; piece != kNone; piece = pieces_[piece].next) {
    const std::vector<std::uint32_t>& shape = shapes_[pieces_[piece].shape];
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == key) found = words_[pieces_[piece].begin + i];
    }
  }
  return found;
}

PickleValue Pickle::get(PickleValue dict, std::string_view key) const { return get(dict, key_id(key)); }

std::string_view Pickle::text(PickleValue value) const {
  if (value.kind() != Kind::kText) return {};
  const TextRange& range = texts_[value.payload()];
  return std::string_view(text_bytes_).substr(range.begin, range.size);
}

std::uint64_t Pickle::unsigned_int(PickleValue value, bool& ok) const {
  ok = true;
  if (value.kind() == Kind::kInt) return value.payload();
  if (value.kind() == Kind::kWide) {
    const std::int64_t wide = wide_[value.payload()];
    ok = wide >= 0 || wide_is_unsigned_[value.payload()];
    return static_cast<std::uint64_t>(wide);
  }
  ok = false;
  return 0;
}

std::int64_t Pickle::signed_int(PickleValue value, bool& ok) const {
  ok = true;
  if (value.kind() == Kind::kInt) return static_cast<std::int64_t>(value.payload());
  if (value.kind() == Kind::kWide && !wide_is_unsigned_[value.payload()]) return wide_[value.payload()];
  ok = false;
  return 0;
}

double Pickle::real(PickleValue value) const {
  bool ok = false;
  if (value.kind() == Kind::kReal) return reals_[value.payload()];
  const std::int64_t whole = signed_int(value, ok);
  return ok ? static_cast<double>(whole) : 0.0;
}

}  // namespace tenon::replay
