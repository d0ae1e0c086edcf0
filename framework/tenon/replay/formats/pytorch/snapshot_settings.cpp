// Settings as fields and as a string, whichever the file has.
#include <tenon/core/units.h>
#include <tenon/replay/formats/pytorch/snapshot_settings.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace tenon::replay {

namespace {

using Kind = PickleValue::Kind;

/// Settings that were made in the program (torch.cuda.memory._set_allocator_settings) leave the string empty.
std::string conf_of_fields(const RecordedAllocator& settings) {
  std::string conf;
  const auto add = [&](const std::string& setting) { conf += (conf.empty() ? "" : ",") + setting; };
  if (settings.expandable_segments) add("expandable_segments:True");
  if (settings.max_split_size.value_or(0) >= MiB && *settings.max_split_size < kMaxBlockBytes)
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

/// What a replay says of the recording behind it.
void decode_recording(SnapshotFields& fields, PickleValue dict, SnapshotFile& file) {
  const Pickle& pickle = fields.pickle;
  bool ok = false;
  const std::uint64_t seeded = pickle.unsigned_int(pickle.get(dict, "seeded_blocks"), ok);
  if (ok) file.seeded_blocks = seeded;
  const PickleValue lines = pickle.get(dict, "recording");
  if (!Pickle::is_sequence(lines) || pickle.size(lines) > SnapshotFields::kMaxKeys) return;
  fields.spend(pickle.size(lines));
  std::string key;
  pickle.for_each(lines, [&](std::uint64_t i, PickleValue text) {  // key, value, key, value
    const std::string_view word = pickle.text(text).substr(0, 4096);
    if (i % 2 == 0) {
      key = word.substr(0, 64);
    } else if (text.kind() == Kind::kText && !key.empty()) {
      file.recording.insert_or_assign(key, std::string(word));
    }
  });
  const PickleValue failures = pickle.get(dict, "failures");
  if (!Pickle::is_sequence(failures)) return;
  fields.spend(pickle.size(failures));
  pickle.for_each(failures, [&](std::uint64_t i, PickleValue value) {  // reserved, left, reserved, left
    const std::uint64_t bytes =
        fields.number(value, "failures", SnapshotFields::at("tenon.failures", i), kMaxBlockBytes);
    if (i % 2 == 0) {
      file.failures.emplace_back(bytes, 0);
    } else {
      file.failures.back().second = bytes;
    }
  });
}

}  // namespace

void decode_settings(const SnapshotFields& fields, PickleValue dict, SnapshotFile& file) {
  const Pickle& pickle = fields.pickle;
  if (!fields.is_small_dict(dict)) return;
  RecordedAllocator& settings = file.settings;
  settings.has_settings = true;
  settings.pytorch_conf = std::string(pickle.text(pickle.get(dict, "PYTORCH_CUDA_ALLOC_CONF")));
  if (settings.pytorch_conf.empty())
    settings.pytorch_conf = std::string(pickle.text(pickle.get(dict, "PYTORCH_ALLOC_CONF")));
  settings.expandable_segments = pickle.truth(pickle.get(dict, "expandable_segments"));
  settings.garbage_collection_threshold = pickle.real(pickle.get(dict, "garbage_collection_threshold"));
  bool ok = false;
  const std::int64_t split = pickle.signed_int(pickle.get(dict, "max_split_size"), ok);
  if (ok && split > 0) settings.max_split_size = static_cast<std::uint64_t>(split);
  const PickleValue divisions = pickle.get(dict, "roundup_power2_divisions");
  if (Pickle::is_dict(divisions) && pickle.size(divisions) <= SnapshotFields::kMaxKeys) {
    for (int power = 0; power < 16; ++power) {
      const std::uint64_t value = pickle.unsigned_int(pickle.get(divisions, std::to_string(1 << power)), ok);
      settings.roundup_power2_divisions.push_back(ok && value <= 0xffff ? static_cast<std::uint32_t>(value) : 0);
    }
  }
  if (settings.pytorch_conf.empty()) settings.pytorch_conf = conf_of_fields(settings);
}

void decode_tenons_own(SnapshotFields& fields, PickleValue dict, SnapshotFile& file) {
  const Pickle& pickle = fields.pickle;
  if (!fields.is_small_dict(dict)) return;
  file.allocator = std::string(pickle.text(pickle.get(dict, "allocator")).substr(0, 4096));
  file.allocator_options = std::string(pickle.text(pickle.get(dict, "allocator_options")).substr(0, 4096));
  file.allocator_plugin = std::string(pickle.text(pickle.get(dict, "allocator_plugin")).substr(0, 4096));
  file.is_pytorchs = pickle.truth(pickle.get(dict, "is_pytorch_allocator"));
  const PickleValue list = pickle.get(dict, "empty_caches");
  const std::string_view origin = pickle.text(pickle.get(dict, "origin"));
  file.is_replay = origin == "replay" || (origin.empty() && Pickle::is_sequence(list));
  if (file.is_replay) decode_recording(fields, dict, file);
  if (const PickleValue unlisted = pickle.get(dict, "unlisted_bytes"); unlisted.kind() != Kind::kNone)
    file.unlisted_bytes = fields.number(unlisted, "unlisted_bytes", "tenon", kMaxBlockBytes);
  if (!Pickle::is_sequence(list)) return;
  fields.spend(pickle.size(list));
  file.empty_caches.emplace();
  pickle.for_each(list, [&](std::uint64_t i, PickleValue value) {
    const std::uint64_t entry =
        fields.number(value, "empty_caches", SnapshotFields::at("tenon.empty_caches", i), kMaxBlockBytes);
    if (!file.empty_caches->empty() && entry < file.empty_caches->back())
      fields.fail(SnapshotFields::at("tenon.empty_caches", i), "goes back");
    file.empty_caches->push_back(entry);
  });
}

}  // namespace tenon::replay
