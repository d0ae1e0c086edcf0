// The pickle machine: a stack, marks and a memo. Operators that could run code (GLOBAL, REDUCE, …) are refused by name
// and offset. Declared in pickle_builder.h. By hand: what reads pickles outside of Python makes a tree of objects,
// which a snapshot of a gigabyte does not fit into, and Debian packages none.
#include <tenon/core/units.h>
#include <tenon/replay/formats/pytorch/pickle/pickle_builder.h>
#include <tenon/replay/trace/trace.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

namespace tenon::replay {

namespace {

using Kind = PickleValue::Kind;

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
  PickleMachine(InputFile& input, Pickle& out) : input_(input), out_(out), builder_(input, out) {}

  void run() {
    if (byte() != 0x80) fail("not a pickle of protocol 2 or later: the PROTO operator is missing");
    const int protocol = byte();
    if (protocol < 2 || protocol > 5) fail("pickle protocol " + std::to_string(protocol) + "; 2 to 5 are read");
    for (std::uint64_t steps = 1; step(); ++steps) {
      if (steps % kStepsBetweenChecks == 0) check_density();
    }
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { builder_.fail(reason); }

  // One byte can make a container of some thirty: a file of nothing else is refused, so that memory stays a small
  // multiple of what was read. Real snapshots have a container in 30 bytes at most, and less on the stack.
  static constexpr std::uint64_t kStepsBetweenChecks = 1 << 16;
  static constexpr std::uint64_t kFreeValues = 1 << 20;
  void check_density() const {
    const std::uint64_t most = kFreeValues + input_.position() / 8;
    if (builder_.containers() <= most && stack_.size() <= most) return;
    fail(std::to_string(std::max(builder_.containers(), stack_.size())) + " open values in " +
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
  void push_integer(std::int64_t value) { push(builder_.integer(value)); }
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
    if (count > 9 || (count == 9 && bytes[8] != filler)) return push(PickleValue::make(Kind::kTooBig));
    std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
    std::memcpy(&value, bytes, std::min<std::uint64_t>(count, 8));
    const auto as_signed = static_cast<std::int64_t>(value);
    // The sign of nine bytes may be another than that of the eight.
    if (negative && as_signed >= 0) return push(PickleValue::make(Kind::kTooBig));
    if (!negative && as_signed < 0) return push(builder_.unsigned_integer(as_signed));
    push(builder_.integer(as_signed));
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
    push(builder_.text(scratch_));
  }
  std::span<const PickleValue> values(std::size_t from) const { return {stack_.data() + from, stack_.size() - from}; }

  void append(std::size_t from, bool is_batch) {
    if (from == floor()) fail("appends to nothing");
    if (stack_[from - 1].kind() != Kind::kList) fail("appends to something that is not a list");
    builder_.append(stack_[from - 1], values(from));
    stack_.shrink(from);
    if (is_batch) settle();
  }
  void set_items(std::size_t from, bool is_batch) {
    if (from == floor()) fail("sets an item of nothing");
    if (stack_[from - 1].kind() != Kind::kDict) fail("sets an item of something that is not a dict");
    builder_.set_items(stack_[from - 1], values(from));
    stack_.shrink(from);
    if (is_batch) settle();
  }
  void tuple(std::size_t from) {
    const PickleValue made = builder_.tuple(values(from));
    stack_.shrink(from);
    push(made);
    settle();
  }
  void tuple_of(std::size_t count) {
    if (stack_.size() < floor() + count) fail("takes a value from an empty stack");
    tuple(stack_.size() - count);
  }
  /// The container on top of the stack is complete, as far as picklers go: an equal one may take its place.
  void settle() {
    PickleValue& value = stack_.back();
    const std::uint64_t memo = builder_.memo_of(value);
    const PickleValue known = builder_.settle(value);
    if (memo < memo_.size() && memo_[memo] == value) memo_[memo] = known;
    value = known;
  }

  static bool is_container(PickleValue value) { return value.kind() >= Kind::kList; }

  void put(std::uint64_t index) {
    if (stack_.size() <= floor()) fail("memoises an empty stack");
    const PickleValue value = stack_.back();
    if (is_container(value)) builder_.memoised(value, index, index <= memo_.size());
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
    if (is_container(value)) builder_.recalled(value);
    push(value);
  }

  // Long: a table, one case an operator, each read by itself.
  bool step() {
    builder_.op_offset = input_.position();
    const int op = byte();
    switch (op) {
      case 0x95:
        little<std::uint64_t>();
        break;  // FRAME
      case '}':
        push(builder_.container(Kind::kDict));
        break;
      case ']':
        push(builder_.container(Kind::kList));
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
        push_integer(byte());
        break;
      case 'M':
        push_integer(little<std::uint16_t>());
        break;
      case 'J':
        push_integer(little<std::int32_t>());
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
      case 'G':
        push(builder_.real(std::bit_cast<double>(__builtin_bswap64(little<std::uint64_t>()))));
        break;
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
  PickleBuilder builder_;
  PodVector<PickleValue> stack_;
  PodVector<std::size_t> marks_;
  PodVector<PickleValue> memo_;
  std::unordered_map<std::uint64_t, PickleValue> sparse_memo_;
  std::uint64_t puts_ = 0;
  std::string scratch_;
};

Pickle::Pickle(InputFile& input) { PickleMachine(input, *this).run(); }

}  // namespace tenon::replay
