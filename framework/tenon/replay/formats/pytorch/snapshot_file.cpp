// Decoding the snapshot's graph. Unknown keys are skipped at every level, missing ones get what their version meant.
#include <tenon/core/units.h>
#include <tenon/replay/formats/pytorch/pickle.h>
#include <tenon/replay/formats/pytorch/snapshot_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>

namespace tenon::replay {

namespace {

using Kind = PickleValue::Kind;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 62;
constexpr std::uint64_t kMaxKeys = 256;  // of one entry, block or segment
constexpr std::int64_t kMaxDevices = 4096;
constexpr std::uint64_t kMaxMarks = 100000;
constexpr std::size_t kMaxMarkBytes = 4096;
/// Of all names together; what is longer than a line is cut then. A file may name one long text as often as it likes.
constexpr std::size_t kMarkBytesFree = 4 * MiB;
constexpr std::size_t kShortMarkBytes = 200;
// Every frame gets texts of its own; a file states each text once. Real ones have a few dozen frames a source file.
constexpr std::uint64_t kMaxFrameExpansion = 64;
constexpr char kEndOf[] = "end of ";
constexpr std::uint64_t kFrameBytesFree = 16 << 20;

enum Field : int { kAction, kAddress, kDeviceFree, kSize, kStream, kTime, kFrames, kFieldCount };
constexpr std::array<const char*, kFieldCount> kFieldNames = {"action", "addr",    "device_free", "size",
                                                              "stream", "time_us", "frames"};

class Decoder {
 public:
  Decoder(InputFile& input, bool with_stacks) : input_(input), pickle_(input), with_stacks_(with_stacks) {
    for (int i = 0; i < kFieldCount; ++i)
      field_ids_[static_cast<std::size_t>(i)] = pickle_.key_id(kFieldNames[static_cast<std::size_t>(i)]);
    budget_ = pickle_.word_count() + 1000;
  }

  SnapshotFile decode() {
    const PickleValue root = pickle_.root();
    if (root.kind() == Kind::kList) {  // torch 1.13: the segments, nothing else
      segments(root, "");
    } else if (Pickle::is_dict(root)) {
      if (pickle_.size(root) > kMaxKeys)
        fail("", "a dict of " + std::to_string(pickle_.size(root)) + " keys is not a memory snapshot");
      const PickleValue list = pickle_.get(root, "segments");
      const PickleValue traces = pickle_.get(root, "device_traces");
      if (list.kind() == Kind::kNone && traces.kind() == Kind::kNone) {
        fail("", "neither 'segments' nor 'device_traces': a pickle, but not a memory snapshot");
      }
      if (list.kind() != Kind::kNone) segments(list, "segments");
      annotations(pickle_.get(root, "external_annotations"));
      if (traces.kind() != Kind::kNone) device_traces(traces);
      settings(pickle_.get(root, "allocator_settings"));
      of_tenon(pickle_.get(root, "tenon"));
    } else {
      fail("", "a pickle whose root is neither a dict nor a list is not a memory snapshot");
    }
    for (auto& [index, device] : devices_) file_.devices.push_back(std::move(device));
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& reason) const {
    throw TraceError(input_.path() + ": " + (place.empty() ? std::string() : place + ": ") + reason);
  }
  static std::string at(const std::string& place, std::uint64_t index) {
    return place + "[" + std::to_string(index) + "]";
  }
  void spend(std::uint64_t count) {
    if (count > budget_) fail("", "the file names the same lists over and over: refused");
    budget_ -= count;
  }

  std::uint64_t number(PickleValue value, const char* key, const std::string& place, std::uint64_t limit) const {
    bool ok = false;
    const std::uint64_t result = pickle_.unsigned_int(value, ok);
    if (!ok) fail(place, std::string("'") + key + "' is missing, negative, no integer or beyond 64 bits");
    if (result > limit) fail(place, std::string("'") + key + "' is out of range: " + std::to_string(result));
    return result;
  }
  /// Stream handles are pointers; some writers print them signed.
  std::uint64_t stream(PickleValue value, const std::string& place) const {
    if (value.kind() == Kind::kNone) return 0;
    bool ok = false;
    const std::uint64_t handle = pickle_.unsigned_int(value, ok);
    if (ok) return handle;
    const std::int64_t as_signed = pickle_.signed_int(value, ok);
    if (!ok) fail(place, "'stream' is not an integer of 64 bits");
    return static_cast<std::uint64_t>(as_signed);
  }
  SnapshotDevice& device(std::int64_t index) {
    SnapshotDevice& result = devices_[index];
    result.index = index;
    return result;
  }

  std::uint32_t stack(PickleValue frames) {
    if (!with_stacks_ || !Pickle::is_sequence(frames) || pickle_.size(frames) == 0) return 0;
    const auto [known, is_new] = stack_of_list_.try_emplace(frames.payload(), 0);
    if (!is_new) return known->second;
    spend(pickle_.size(frames));
    std::vector<std::uint32_t> ids;
    pickle_.for_each(frames, [&](std::uint64_t, PickleValue frame) {
      if (!Pickle::is_dict(frame) || pickle_.size(frame) > kMaxKeys) return;
      bool ok = false;
      const std::uint64_t line = pickle_.unsigned_int(pickle_.get(frame, "line"), ok);
      Frame made{std::string(pickle_.text(pickle_.get(frame, "name"))),
                 std::string(pickle_.text(pickle_.get(frame, "filename"))),
                 ok ? static_cast<std::uint32_t>(std::min<std::uint64_t>(line, 0xffffffff)) : 0};
      const auto [entry, added] = frame_ids_.try_emplace(made, static_cast<std::uint32_t>(file_.frames.size()));
      if (added) {
        frame_bytes_ += made.function.size() + made.file.size();
        if (frame_bytes_ > kFrameBytesFree + kMaxFrameExpansion * pickle_.text_bytes())
          fail("", "its stack frames name the same long texts over and over: refused");
        file_.frames.push_back(std::move(made));
      }
      ids.push_back(entry->second);
    });
    const auto [entry, added] = stack_ids_.try_emplace(ids, static_cast<std::uint32_t>(file_.stacks.size()));
    if (added) file_.stacks.push_back(std::move(ids));
    return known->second = entry->second;
  }

  void segments(PickleValue list, const std::string& name) {
    if (!Pickle::is_sequence(list)) fail(name, "is not a list");
    spend(pickle_.size(list));
    pickle_.for_each(list, [&](std::uint64_t index, PickleValue value) {
      segment(value, at(name.empty() ? "segments" : name, index));
    });
  }

  void segment(PickleValue value, const std::string& place) {
    if (!Pickle::is_dict(value) || pickle_.size(value) > kMaxKeys) fail(place, "is not a segment");
    SnapshotSegment segment;
    segment.address = number(pickle_.get(value, "address"), "address", place, ~std::uint64_t{0} - 1);
    segment.bytes = number(pickle_.get(value, "total_size"), "total_size", place, kMaxBytes);
    segment.stream = stream(pickle_.get(value, "stream"), place);
    segment.is_large = pickle_.text(pickle_.get(value, "segment_type")) != "small";
    segment.is_expandable = pickle_.truth(pickle_.get(value, "is_expandable"));
    if (const PickleValue pool = pickle_.get(value, "segment_pool_id"); Pickle::is_sequence(pool)) {
      spend(pickle_.size(pool));
      pickle_.for_each(pool, [&](std::uint64_t, PickleValue part) { segment.is_private |= pickle_.truth(part); });
    }
    const PickleValue index = pickle_.get(value, "device");
    const std::int64_t device_index =
        index.kind() == Kind::kNone ? 0 : static_cast<std::int64_t>(number(index, "device", place, kMaxDevices));
    SnapshotDevice& owner = device(device_index);
    owner.segments.push_back(segment);

    const PickleValue blocks = pickle_.get(value, "blocks");
    if (!Pickle::is_sequence(blocks)) fail(place, "'blocks' is not a list");
    spend(pickle_.size(blocks));
    std::uint64_t next = segment.address;
    pickle_.for_each(
        blocks, [&](std::uint64_t i, PickleValue block) { next = this->block(block, segment, next, owner, place, i); });
  }

  /// Returns the address after the block: old files state none and tile the segment.
  std::uint64_t block(PickleValue value, const SnapshotSegment& segment, std::uint64_t next, SnapshotDevice& owner,
                      const std::string& segment_place, std::uint64_t index) {
    if (!Pickle::is_dict(value) || pickle_.size(value) > kMaxKeys)
      fail(at(segment_place + ".blocks", index), "is not a block");
    const std::string_view state = pickle_.text(pickle_.get(value, "state"));
    const PickleValue stated = pickle_.get(value, "address");
    const auto place = [&] { return at(segment_place + ".blocks", index); };
    bool ok = false;
    const std::uint64_t bytes = pickle_.unsigned_int(pickle_.get(value, "size"), ok);
    if (!ok || bytes > kMaxBytes) fail(place(), "'size' is missing, no integer or out of range");
    const std::uint64_t address =
        stated.kind() == Kind::kNone ? next : number(stated, "address", place(), ~std::uint64_t{0} - 1);
    if (state == "active_allocated" || state == "active_pending_free" || state == "active_awaiting_free") {
      SnapshotBlock live{.address = address, .bytes = bytes, .requested_bytes = bytes, .stream = segment.stream};
      live.is_pending_free = state != "active_allocated";
      const PickleValue history = pickle_.get(value, "history");
      if (const PickleValue requested = pickle_.get(value, "requested_size"); requested.kind() != Kind::kNone) {
        live.requested_bytes = number(requested, "requested_size", place(), kMaxBytes);
      }
      live.stack = stack(pickle_.get(value, "frames"));
      if (Pickle::is_sequence(history) &&
          pickle_.size(history) != 0) {  // torch 1.13 and 2.0: users of the block, newest first
        spend(pickle_.size(history));
        pickle_.for_each(history, [&](std::uint64_t i, PickleValue user) {
          if (i != 0 || !Pickle::is_dict(user) || pickle_.size(user) > kMaxKeys) return;
          const PickleValue real = pickle_.get(user, "real_size");
          if (real.kind() != Kind::kNone) live.requested_bytes = number(real, "real_size", place(), kMaxBytes);
          if (live.stack == 0) live.stack = stack(pickle_.get(user, "frames"));
        });
      }
      if (live.requested_bytes == 0 || live.requested_bytes > bytes) live.requested_bytes = bytes;
      if (bytes != 0) owner.live.push_back(live);
    } else if (state != "inactive") {
      fail(place(), "unknown state '" + std::string(state.substr(0, 40)) + "'");
    }
    return address + bytes;
  }

  void annotations(PickleValue list) {
    if (!Pickle::is_sequence(list) || pickle_.size(list) > kMaxMarks) return;
    spend(pickle_.size(list));
    std::size_t mark_bytes = 0;
    pickle_.for_each(list, [&](std::uint64_t, PickleValue value) {
      if (!Pickle::is_dict(value) || pickle_.size(value) > kMaxKeys) return;
      const std::string_view stage = pickle_.text(pickle_.get(value, "stage"));
      if (stage != "START" && stage != "END") return;
      bool ok = false;
      Annotation made;
      made.time = pickle_.signed_int(pickle_.get(value, "time_us"), ok);
      if (!ok) return;
      made.name = stage == "END" ? kEndOf : "";
      made.name += pickle_.text(pickle_.get(value, "name"))
                       .substr(0, mark_bytes < kMarkBytesFree ? kMaxMarkBytes : kShortMarkBytes);
      mark_bytes += made.name.size();
      std::ranges::replace(made.name, '\n', ' ');
      const std::int64_t device = pickle_.signed_int(pickle_.get(value, "device"), ok);
      if (ok) made.device = device;
      annotations_.push_back(std::move(made));
    });
    std::ranges::stable_sort(annotations_, {}, &Annotation::time);
  }

  void device_traces(PickleValue lists) {
    if (!Pickle::is_sequence(lists)) fail("device_traces", "is not a list");
    if (pickle_.size(lists) > static_cast<std::uint64_t>(kMaxDevices))
      fail("device_traces", "has more than 4096 devices");
    spend(pickle_.size(lists));
    pickle_.for_each(lists, [&](std::uint64_t index, PickleValue list) {
      const std::string place = at("device_traces", index);
      if (!Pickle::is_sequence(list)) fail(place, "is not a list");
      if (pickle_.size(list) == 0) return;
      spend(pickle_.size(list));
      SnapshotDevice& owner = device(static_cast<std::int64_t>(index));
      owner.entries.reserve(pickle_.size(list));
      std::size_t next_annotation = 0;
      const auto annotate = [&](std::uint64_t i, std::int64_t until) {
        for (; next_annotation < annotations_.size() && annotations_[next_annotation].time <= until;
             ++next_annotation) {
          const Annotation& annotation = annotations_[next_annotation];
          if (annotation.device.value_or(owner.index) == owner.index) owner.marks.emplace_back(i, annotation.name);
        }
      };
      pickle_.for_each(list, [&](std::uint64_t i, PickleValue value) {
        std::int64_t time = 0;
        const SnapshotEntry made = entry(value, place, i, time);
        annotate(i, time);
        owner.entries.push_back(made);
      });
      annotate(owner.entries.size(), std::numeric_limits<std::int64_t>::max());
      file_.has_history = true;
    });
  }

  SnapshotEntry entry(PickleValue value, const std::string& list, std::uint64_t index, std::int64_t& time) {
    const auto place = [&] { return at(list, index); };
    if (!Pickle::is_dict(value) || pickle_.size(value) > kMaxKeys) fail(place(), "is not a trace entry");
    std::array<PickleValue, kFieldCount> fields{};
    std::uint32_t shape = 0;
    if (const PickleValue* row = pickle_.row(value, shape)) {
      const auto& positions = layout(shape);
      for (std::size_t i = 0; i < kFieldCount; ++i) {
        if (positions[i] >= 0) fields[i] = row[positions[i]];
      }
    } else {
      for (std::size_t i = 0; i < kFieldCount; ++i) fields[i] = pickle_.get(value, field_ids_[i]);
    }
    SnapshotEntry made;
    made.action = action(fields[kAction], place);
    if (made.action == SnapshotAction::kOther) return made;
    bool ok = false;
    made.address = pickle_.unsigned_int(
        fields[made.action == SnapshotAction::kOom && fields[kAddress].kind() == Kind::kNone ? kDeviceFree : kAddress],
        ok);
    if (!ok || made.address > ~std::uint64_t{0} - 16) {
      const bool is_oom = made.action == SnapshotAction::kOom;
      fail(place(),
           std::string(is_oom ? "'device_free' (or 'addr')" : "'addr'") + " is missing, no integer or out of range");
    }
    made.bytes = pickle_.unsigned_int(fields[kSize], ok);
    if (!ok || made.bytes > kMaxBytes) fail(place(), "'size' is missing, no integer or out of range");
    if (fields[kStream].kind() == Kind::kInt) {
      made.stream = fields[kStream].payload();
    } else {
      made.stream = stream(fields[kStream], list);
    }
    if (fields[kTime].kind() != Kind::kNone) time = pickle_.signed_int(fields[kTime], ok);
    made.stack = stack(fields[kFrames]);
    return made;
  }
  template <class Place>
  SnapshotAction action(PickleValue value, const Place& place) {
    if (value.kind() != Kind::kText) fail(place(), "'action' is missing or no text");
    if (value == last_action_value_) return last_action_;
    static constexpr std::pair<std::string_view, SnapshotAction> kActions[] = {
        {"alloc", SnapshotAction::kAlloc},
        {"free_requested", SnapshotAction::kFreeRequested},
        {"free_completed", SnapshotAction::kFreeCompleted},
        {"segment_alloc", SnapshotAction::kSegmentAlloc},
        {"segment_free", SnapshotAction::kSegmentFree},
        {"segment_map", SnapshotAction::kSegmentMap},
        {"segment_unmap", SnapshotAction::kSegmentUnmap},
        {"oom", SnapshotAction::kOom}};
    last_action_value_ = value;
    last_action_ = SnapshotAction::kOther;  // snapshot, annotate, user_defined, what later versions add
    for (const auto& [name, known] : kActions) {
      if (pickle_.text(value) == name) last_action_ = known;
    }
    return last_action_;
  }
  const std::array<std::int16_t, kFieldCount>& layout(std::uint32_t shape) {
    if (shape >= layouts_.size()) {
      layouts_.resize(shape + 1);
      layout_known_.resize(shape + 1, false);
    }
    if (!layout_known_[shape]) {
      layouts_[shape].fill(-1);
      const auto& keys = pickle_.keys(shape);
      for (std::size_t k = 0; k < keys.size(); ++k) {
        for (std::size_t i = 0; i < kFieldCount; ++i) {
          if (keys[k] == field_ids_[i]) layouts_[shape][i] = static_cast<std::int16_t>(k);
        }
      }
      layout_known_[shape] = true;
    }
    return layouts_[shape];
  }

  void of_tenon(PickleValue dict) {
    if (!Pickle::is_dict(dict) || pickle_.size(dict) > kMaxKeys) return;
    file_.allocator = std::string(pickle_.text(pickle_.get(dict, "allocator")).substr(0, 4096));
    file_.allocator_options = std::string(pickle_.text(pickle_.get(dict, "allocator_options")).substr(0, 4096));
    const PickleValue list = pickle_.get(dict, "empty_caches");
    const std::string_view origin = pickle_.text(pickle_.get(dict, "origin"));
    file_.is_replay = origin == "replay" || (origin.empty() && Pickle::is_sequence(list));
    if (file_.is_replay) recording(dict);
    if (!Pickle::is_sequence(list)) return;
    spend(pickle_.size(list));
    file_.empty_caches.emplace();
    pickle_.for_each(list, [&](std::uint64_t i, PickleValue value) {
      const std::uint64_t entry = number(value, "empty_caches", at("tenon.empty_caches", i), kMaxBytes);
      if (!file_.empty_caches->empty() && entry < file_.empty_caches->back())
        fail(at("tenon.empty_caches", i), "goes back");
      file_.empty_caches->push_back(entry);
    });
  }

  void recording(PickleValue dict) {
    bool ok = false;
    const std::uint64_t seeded = pickle_.unsigned_int(pickle_.get(dict, "seeded_blocks"), ok);
    if (ok) file_.seeded_blocks = seeded;
    const PickleValue lines = pickle_.get(dict, "recording");
    if (!Pickle::is_sequence(lines) || pickle_.size(lines) > kMaxKeys) return;
    spend(pickle_.size(lines));
    std::string key;
    pickle_.for_each(lines, [&](std::uint64_t i, PickleValue text) {  // key, value, key, value
      const std::string_view word = pickle_.text(text).substr(0, 4096);
      if (i % 2 == 0) {
        key = word.substr(0, 64);
      } else if (text.kind() == Kind::kText && !key.empty()) {
        file_.recording.insert_or_assign(key, std::string(word));
      }
    });
    const PickleValue failures = pickle_.get(dict, "failures");
    if (!Pickle::is_sequence(failures)) return;
    spend(pickle_.size(failures));
    pickle_.for_each(failures, [&](std::uint64_t i, PickleValue value) {  // reserved, left, reserved, left
      const std::uint64_t bytes = number(value, "failures", at("tenon.failures", i), kMaxBytes);
      if (i % 2 == 0) {
        file_.failures.emplace_back(bytes, 0);
      } else {
        file_.failures.back().second = bytes;
      }
    });
  }

  void settings(PickleValue dict) {
    if (!Pickle::is_dict(dict) || pickle_.size(dict) > kMaxKeys) return;
    RecordedAllocator& settings = file_.settings;
    settings.has_settings = true;
    settings.pytorch_conf = std::string(pickle_.text(pickle_.get(dict, "PYTORCH_CUDA_ALLOC_CONF")));
    if (settings.pytorch_conf.empty())
      settings.pytorch_conf = std::string(pickle_.text(pickle_.get(dict, "PYTORCH_ALLOC_CONF")));
    settings.expandable_segments = pickle_.truth(pickle_.get(dict, "expandable_segments"));
    settings.garbage_collection_threshold = pickle_.real(pickle_.get(dict, "garbage_collection_threshold"));
    bool ok = false;
    const std::int64_t split = pickle_.signed_int(pickle_.get(dict, "max_split_size"), ok);
    if (ok && split > 0) settings.max_split_size = static_cast<std::uint64_t>(split);
    const PickleValue divisions = pickle_.get(dict, "roundup_power2_divisions");
    if (Pickle::is_dict(divisions) && pickle_.size(divisions) <= kMaxKeys) {
      for (int power = 0; power < 16; ++power) {
        const std::uint64_t value = pickle_.unsigned_int(pickle_.get(divisions, std::to_string(1 << power)), ok);
        settings.roundup_power2_divisions.push_back(ok && value <= 0xffff ? static_cast<std::uint32_t>(value) : 0);
      }
    }
    if (settings.pytorch_conf.empty()) settings.pytorch_conf = conf_of_fields(settings);
  }

  /// Settings that were made in the program (torch.cuda.memory._set_allocator_settings) leave the string empty.
  static std::string conf_of_fields(const RecordedAllocator& settings) {
    std::string conf;
    const auto add = [&](const std::string& setting) { conf += (conf.empty() ? "" : ",") + setting; };
    if (settings.expandable_segments) add("expandable_segments:True");
    if (settings.max_split_size.value_or(0) >= MiB && *settings.max_split_size < kMaxBytes)
      add("max_split_size_mb:" + std::to_string(*settings.max_split_size / MiB));
    if (settings.garbage_collection_threshold > 0 && settings.garbage_collection_threshold < 1)
      add(fmt::format("garbage_collection_threshold:{:g}", settings.garbage_collection_threshold));
    const auto& divisions = settings.roundup_power2_divisions;
    if (std::ranges::all_of(divisions, [](std::uint32_t count) { return count == 0; })) return conf;
    if (std::ranges::adjacent_find(divisions, std::not_equal_to<>()) == divisions.end()) {
      add("roundup_power2_divisions:" + std::to_string(divisions.front()));
      return conf;
    }
    std::string list;
    for (std::size_t i = 0; i < divisions.size(); ++i) {
      const std::string from = i + 1 == divisions.size() ? ">" : std::to_string(1U << i);
      list += (i == 0 ? "" : ",") + from + ":" + std::to_string(divisions[i]);
    }
    add("roundup_power2_divisions:[" + list + "]");
    return conf;
  }

  InputFile& input_;
  Pickle pickle_;
  bool with_stacks_;
  SnapshotFile file_;
  std::map<std::int64_t, SnapshotDevice> devices_;
  std::array<std::uint32_t, kFieldCount> field_ids_{};
  std::vector<std::array<std::int16_t, kFieldCount>> layouts_;
  std::vector<bool> layout_known_;
  std::unordered_map<std::uint64_t, std::uint32_t> stack_of_list_;
  std::map<Frame, std::uint32_t> frame_ids_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> stack_ids_;
  struct Annotation {
    std::int64_t time = 0;
    std::optional<std::int64_t> device;  ///< empty: of all
    std::string name;
  };
  std::vector<Annotation> annotations_;
  PickleValue last_action_value_;
  SnapshotAction last_action_ = SnapshotAction::kOther;
  std::uint64_t budget_ = 0;
  std::uint64_t frame_bytes_ = 0;
};

}  // namespace

SnapshotFile read_snapshot_file(InputFile& input, bool with_stacks) { return Decoder(input, with_stacks).decode(); }

}  // namespace tenon::replay
