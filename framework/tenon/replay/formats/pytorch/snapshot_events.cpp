// Millions of entries of a few shapes: where the fields of a shape stand is looked up once.
#include <tenon/core/units.h>
#include <tenon/replay/formats/pytorch/snapshot_events.h>
#include <tenon/replay/trace/long_work.h>

#include <algorithm>
#include <limits>

namespace tenon::replay {

namespace {

using Kind = PickleValue::Kind;
constexpr std::uint64_t kMaxMarks = 100000;
constexpr std::size_t kMaxMarkBytes = 4096;
/// Of all names together; what is longer than a line is cut then. A file may name one long text as often as it likes.
constexpr std::size_t kMarkBytesFree = 4 * MiB;
constexpr std::size_t kShortMarkBytes = 200;

}  // namespace

SnapshotEvents::SnapshotEvents(SnapshotFields& fields, SnapshotStacks& stacks, bool with_times)
    : fields_(fields), stacks_(stacks), with_times_(with_times) {
  constexpr std::array<const char*, kFieldCount> kNames = {"action", "addr",    "device_free", "size",
                                                           "stream", "time_us", "frames"};
  for (std::size_t i = 0; i < kFieldCount; ++i) field_ids_[i] = fields_.pickle.key_id(kNames[i]);
}

void SnapshotEvents::annotations(PickleValue list) {
  const Pickle& pickle = fields_.pickle;
  if (!Pickle::is_sequence(list) || pickle.size(list) > kMaxMarks) return;
  fields_.spend(pickle.size(list));
  std::size_t mark_bytes = 0;
  pickle.for_each(list, [&](std::uint64_t, PickleValue value) {
    if (!fields_.is_small_dict(value)) return;
    const std::string_view stage = pickle.text(pickle.get(value, "stage"));
    if (stage != "START" && stage != "END") return;
    bool ok = false;
    Annotation made;
    made.time = pickle.signed_int(pickle.get(value, "time_us"), ok);
    if (!ok) return;
    if (stage == "END") made.name = kEndOfAnnotation;
    made.name +=
        pickle.text(pickle.get(value, "name")).substr(0, mark_bytes < kMarkBytesFree ? kMaxMarkBytes : kShortMarkBytes);
    mark_bytes += made.name.size();
    std::ranges::replace(made.name, '\n', ' ');
    const std::int64_t device = pickle.signed_int(pickle.get(value, "device"), ok);
    if (ok) made.device = device;
    annotations_.push_back(std::move(made));
  });
  std::ranges::stable_sort(annotations_, {}, &Annotation::time);
}

void SnapshotEvents::of_device(PickleValue list, const std::string& place, SnapshotDevice& device) {
  const std::uint64_t count = fields_.pickle.size(list);
  fields_.spend(count);
  device.events.reserve(count);
  std::size_t next = 0;
  const auto annotate = [&](std::uint64_t before, std::int64_t until) {
    for (; next < annotations_.size() && annotations_[next].time <= until; ++next) {
      const Annotation& annotation = annotations_[next];
      if (annotation.device.value_or(device.index) == device.index) device.marks.emplace_back(before, annotation.name);
    }
  };
  WorkMeter meter("reading", count);
  std::int64_t last_time = 0;
  fields_.pickle.for_each(list, [&](std::uint64_t i, PickleValue value) {
    meter.step();
    std::int64_t time = 0;
    const MemoryEvent made = event(value, place, i, time);
    annotate(i, time);
    device.events.push_back(made);
    if (time > 0) last_time = time;  // an entry without one was with the one before
    if (with_times_) device.times_us.push_back(last_time);
  });
  if (last_time == 0) device.times_us.clear();
  annotate(device.events.size(), std::numeric_limits<std::int64_t>::max());
}

MemoryEvent SnapshotEvents::event(PickleValue value, const std::string& list, std::uint64_t index, std::int64_t& time) {
  const Pickle& pickle = fields_.pickle;
  const auto place = [&] { return SnapshotFields::at(list, index); };
  if (!fields_.is_small_dict(value)) fields_.fail(place(), "is not a trace entry");
  const Values values = values_of(value);
  MemoryEvent made;
  made.action = action(values[kAction], list, index);
  if (made.action == HistoryAction::kSnapshot || made.action == HistoryAction::kOther) return made;
  const bool is_oom = made.action == HistoryAction::kOom;
  bool ok = false;
  made.address =
      pickle.unsigned_int(values[is_oom && values[kAddress].kind() == Kind::kNone ? kDeviceFree : kAddress], ok);
  if (!ok || made.address > ~std::uint64_t{0} - 16) {
    fields_.fail(place(), std::string(is_oom ? "'device_free' (or 'addr')" : "'addr'") +
                              " is missing, not an integer or out of range");
  }
  made.bytes = pickle.unsigned_int(values[kSize], ok);
  if (!ok || made.bytes > kMaxBlockBytes) fields_.fail(place(), "'size' is missing, not an integer or out of range");
  if (values[kStream].kind() == Kind::kInt) {
    made.stream = {values[kStream].payload()};
  } else {
    made.stream = fields_.stream(values[kStream], list);
  }
  if (values[kTime].kind() != Kind::kNone) time = pickle.signed_int(values[kTime], ok);
  made.stack = stacks_.stack(values[kFrames]);
  return made;
}

SnapshotEvents::Values SnapshotEvents::values_of(PickleValue entry) {
  Values values{};
  std::uint32_t shape = 0;
  if (const PickleValue* row = fields_.pickle.row(entry, shape)) {
    const Positions& stands_at = positions(shape);
    for (std::size_t i = 0; i < kFieldCount; ++i) {
      if (stands_at[i] >= 0) values[i] = row[stands_at[i]];
    }
  } else {
    for (std::size_t i = 0; i < kFieldCount; ++i) values[i] = fields_.pickle.get(entry, field_ids_[i]);
  }
  return values;
}

HistoryAction SnapshotEvents::action(PickleValue value, const std::string& list, std::uint64_t index) {
  if (value.kind() != Kind::kText) fields_.fail(SnapshotFields::at(list, index), "'action' is missing or not a text");
  if (value == last_action_value_) return last_action_;
  last_action_value_ = value;
  return last_action_ = action_of(fields_.pickle.text(value));
}

const SnapshotEvents::Positions& SnapshotEvents::positions(std::uint32_t shape) {
  if (shape >= positions_.size()) {
    positions_.resize(shape + 1);
    positions_known_.resize(shape + 1, false);
  }
  if (!positions_known_[shape]) {
    positions_[shape].fill(-1);
    const auto& keys = fields_.pickle.keys(shape);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      for (std::size_t i = 0; i < kFieldCount; ++i) {
        if (keys[k] == field_ids_[i]) positions_[shape][i] = static_cast<std::int16_t>(k);
      }
    }
    positions_known_[shape] = true;
  }
  return positions_[shape];
}

}  // namespace tenon::replay
