// A restricted pickle machine: data only. It reads protocols 2 to 5 into a graph of indices and never runs anything.
//
// The graph stays a graph: a list that is named a thousand times is there once, so a "billion laughs" file costs what
// its bytes cost. Dicts share their keys ("shapes"), so that a trace entry costs eight bytes a field; small containers
// of equal content, such as stack frames that a file writes out for every entry, are kept once.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/formats/io/input_file.h>
#include <tenon/replay/trace/pod_vector.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::replay {

/// A value: four bits of kind, sixty of payload.
struct PickleValue {
  enum class Kind : std::uint8_t { kNone, kFalse, kTrue, kInt, kWide, kTooBig, kReal, kText, kList, kTuple, kDict };
  std::uint64_t word = 0;

  Kind kind() const { return static_cast<Kind>(word >> 60); }
  std::uint64_t payload() const { return word & ((std::uint64_t{1} << 60) - 1); }
  static PickleValue make(Kind kind, std::uint64_t payload = 0) {
    return {(static_cast<std::uint64_t>(kind) << 60) | (payload & ((std::uint64_t{1} << 60) - 1))};
  }
  bool operator==(const PickleValue&) const = default;
};

class TENON_API Pickle {
 public:
  /// Throws TraceError with the offset for any operator that is not data, and for anything malformed.
  explicit Pickle(InputFile& input);

  PickleValue root() const { return root_; }

  /// Values of a list or tuple, piece by piece: visit(std::uint64_t index, PickleValue) for each.
  template <class F>
  void for_each(PickleValue list, F&& visit) const {
    std::uint64_t index = 0;
    for (std::uint32_t piece = nodes_[list.payload()].first; piece != kNone; piece = pieces_[piece].next) {
      for (std::uint64_t i = 0; i < pieces_[piece].count; ++i) visit(index++, words_[pieces_[piece].begin + i]);
    }
  }
  std::uint64_t size(PickleValue container) const { return nodes_[container.payload()].count; }

  /// The value under a text key; a value of kind kNone when the dict has no such key. The last of equal keys wins.
  PickleValue get(PickleValue dict, std::string_view key) const;
  /// Id of a key, for get(dict, id); ~0 when no dict has it.
  std::uint32_t key_id(std::string_view key) const;
  PickleValue get(PickleValue dict, std::uint32_t key) const;

  /// A dict that was filled in one go, as every trace entry is: its values, in the order of keys(shape). Null
  /// otherwise.
  const PickleValue* row(PickleValue dict, std::uint32_t& shape) const {
    const Node& node = nodes_[dict.payload()];
    if (node.first == kNone || node.first != node.last) return nullptr;
    shape = pieces_[node.first].shape;
    return &words_[pieces_[node.first].begin];
  }
  const std::vector<std::uint32_t>& keys(std::uint32_t shape) const { return shapes_[shape]; }

  std::string_view text(PickleValue value) const;
  /// The integer as unsigned or signed 64 bits; `ok` is false for another kind or a number that does not fit.
  std::uint64_t unsigned_int(PickleValue value, bool& ok) const;
  std::int64_t signed_int(PickleValue value, bool& ok) const;
  double real(PickleValue value) const;
  bool truth(PickleValue value) const {
    return value.kind() == PickleValue::Kind::kTrue ||
           (value.kind() == PickleValue::Kind::kInt && value.payload() != 0);
  }
  static bool is_sequence(PickleValue value) {
    return value.kind() == PickleValue::Kind::kList || value.kind() == PickleValue::Kind::kTuple;
  }
  static bool is_dict(PickleValue value) { return value.kind() == PickleValue::Kind::kDict; }

  /// Values in all containers, those counted too that are kept once only.
  std::uint64_t word_count() const { return words_read_; }
  /// Of all different texts together.
  std::uint64_t text_bytes() const { return text_bytes_.size(); }
  /// For tests: the containers that are kept, of equal ones one only; no other call shows that a history is not copied.
  std::uint64_t node_count() const { return nodes_.size(); }

 private:
  friend class PickleMachine;
  friend class PickleBuilder;
  static constexpr std::uint32_t kNone = 0xffffffff;

  // What Node::memo may be besides an index.
  static constexpr std::uint32_t kManyNames = 0xfffffffe;  ///< other values may refer to the container already
  static constexpr std::uint32_t kComplete = 0xfffffffd;  ///< equal ones are replaced by it: it may not change any more

  struct Node {  // a container
    std::uint32_t count = 0;
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    std::uint32_t memo = kNone;  ///< where it is memoised
  };
  struct Piece {  // what one APPENDS or SETITEMS added
    std::uint64_t begin = 0;
    std::uint32_t count = 0;
    std::uint32_t next = kNone;
    std::uint32_t shape = kNone;  ///< of a dict's piece
  };

  static std::uint64_t hash(std::string_view text);

  PickleValue root_;
  PodVector<Node> nodes_;
  PodVector<Piece> pieces_;
  PodVector<PickleValue> words_;
  std::uint64_t words_read_ = 0;
  std::vector<std::vector<std::uint32_t>> shapes_;  ///< text ids of the keys
  std::vector<std::int64_t> wide_;                  ///< integers beyond 60 bits
  std::vector<bool> wide_is_unsigned_;
  std::vector<double> reals_;
  std::string text_bytes_;
  struct TextRange {
    std::uint64_t begin = 0;
    std::uint32_t size = 0;
  };
  std::vector<TextRange> texts_;
  std::vector<std::uint32_t> text_table_;  ///< open addressing over texts_, by content
};

}  // namespace tenon::replay
