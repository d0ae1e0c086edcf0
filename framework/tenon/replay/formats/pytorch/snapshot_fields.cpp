// Fields of a snapshot, checked.
#include <tenon/replay/formats/pytorch/snapshot_fields.h>

namespace tenon::replay {

void SnapshotFields::fail(const std::string& place, const std::string& reason) const {
  throw TraceError(input_.path() + ": " + (place.empty() ? std::string() : place + ": ") + reason);
}

std::string SnapshotFields::at(const std::string& place, std::uint64_t index) {
  return place + "[" + std::to_string(index) + "]";
}

void SnapshotFields::spend(std::uint64_t count) {
  if (count > budget_) fail("", "the file names the same lists over and over: refused");
  budget_ -= count;
}

std::uint64_t SnapshotFields::number(PickleValue value, const char* key, const std::string& place,
                                     std::uint64_t limit) const {
  bool ok = false;
  const std::uint64_t result = pickle.unsigned_int(value, ok);
  if (!ok) fail(place, std::string("'") + key + "' is missing, negative, not an integer or beyond 64 bits");
  if (result > limit) fail(place, std::string("'") + key + "' is out of range: " + std::to_string(result));
  return result;
}

StreamRef SnapshotFields::stream(PickleValue value, const std::string& place) const {
  if (value.kind() == PickleValue::Kind::kNone) return {};
  bool ok = false;
  const std::uint64_t handle = pickle.unsigned_int(value, ok);
  if (ok) return {handle};
  const std::int64_t as_signed = pickle.signed_int(value, ok);
  if (!ok) fail(place, "'stream' is not an integer of 64 bits");
  return {static_cast<std::uint64_t>(as_signed)};
}

}  // namespace tenon::replay
