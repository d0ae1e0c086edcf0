// Looking into a pickle that was read.
#include <tenon/replay/formats/pytorch/pickle/pickle.h>

namespace tenon::replay {

using Kind = PickleValue::Kind;

std::uint64_t Pickle::hash(std::string_view text) {
  std::uint64_t hash = 0x9e3779b97f4a7c15u ^ text.size();
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash ^ (hash >> 31);
}

std::uint32_t Pickle::key_id(std::string_view key) const {
  if (text_table_.empty()) return kNone - 1;
  const std::size_t mask = text_table_.size() - 1;
  for (std::size_t i = hash(key) & mask; text_table_[i] != kNone; i = (i + 1) & mask) {
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
  return static_cast<double>(signed_int(value, ok));  // 0 for what is no number
}

}  // namespace tenon::replay
