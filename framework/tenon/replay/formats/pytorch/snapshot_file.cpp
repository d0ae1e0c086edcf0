// Decoding the snapshot's graph. Unknown keys are skipped at every level, missing ones get what their version meant.
#include <tenon/replay/formats/pytorch/snapshot_events.h>
#include <tenon/replay/formats/pytorch/snapshot_fields.h>
#include <tenon/replay/formats/pytorch/snapshot_file.h>
#include <tenon/replay/formats/pytorch/snapshot_settings.h>
#include <tenon/replay/formats/pytorch/snapshot_stacks.h>
#include <tenon/replay/trace/long_work.h>

#include <algorithm>
#include <map>
#include <optional>

namespace tenon::replay {

namespace {

using Kind = PickleValue::Kind;

class Decoder {
 public:
  Decoder(InputFile& input, const ReadOptions& options)
      : fields_(input), stacks_(fields_, file_, options.with_stacks), events_(fields_, stacks_, options.with_columns) {}

  SnapshotFile decode() {
    const Pickle& pickle = fields_.pickle;
    const PickleValue root = pickle.root();
    if (root.kind() == Kind::kList) {  // torch 1.13: the segments, nothing else
      segments(root, "");
    } else if (Pickle::is_dict(root)) {
      if (!fields_.is_small_dict(root))
        fields_.fail("", "a dict of " + std::to_string(pickle.size(root)) + " keys is not a memory snapshot");
      const PickleValue list = pickle.get(root, "segments");
      const PickleValue traces = pickle.get(root, "device_traces");
      if (list.kind() == Kind::kNone && traces.kind() == Kind::kNone) {
        fields_.fail("", "neither 'segments' nor 'device_traces': a pickle, but not a memory snapshot");
      }
      if (list.kind() != Kind::kNone) segments(list, "segments");
      events_.annotations(pickle.get(root, "external_annotations"));
      if (traces.kind() != Kind::kNone) device_traces(traces);
      decode_settings(fields_, pickle.get(root, "allocator_settings"), file_);
      decode_tenons_own(fields_, pickle.get(root, "tenon"), file_);
    } else {
      fields_.fail("", "a pickle whose root is neither a dict nor a list is not a memory snapshot");
    }
    for (auto& [index, device] : devices_) file_.devices.push_back(std::move(device));
    return std::move(file_);
  }

 private:
  SnapshotDevice& device(std::int64_t index) {
    SnapshotDevice& result = devices_[index];
    result.index = index;
    return result;
  }

  void device_traces(PickleValue lists) {
    const Pickle& pickle = fields_.pickle;
    if (!Pickle::is_sequence(lists)) fields_.fail("device_traces", "is not a list");
    if (pickle.size(lists) > static_cast<std::uint64_t>(SnapshotFields::kMaxDevices))
      fields_.fail("device_traces", "has more than 4096 devices");
    fields_.spend(pickle.size(lists));
    pickle.for_each(lists, [&](std::uint64_t index, PickleValue list) {
      const std::string place = SnapshotFields::at("device_traces", index);
      if (!Pickle::is_sequence(list)) fields_.fail(place, "is not a list");
      if (pickle.size(list) == 0) return;
      events_.of_device(list, place, device(static_cast<std::int64_t>(index)));
      file_.has_history = true;
    });
  }

  void segments(PickleValue list, const std::string& name) {
    if (!Pickle::is_sequence(list)) fields_.fail(name, "is not a list");
    fields_.spend(fields_.pickle.size(list));
    fields_.pickle.for_each(list, [&](std::uint64_t index, PickleValue value) {
      segment(value, SnapshotFields::at(name.empty() ? "segments" : name, index));
    });
  }

  void segment(PickleValue value, const std::string& place) {
    const Pickle& pickle = fields_.pickle;
    if (!fields_.is_small_dict(value)) fields_.fail(place, "is not a segment");
    Segment segment;
    segment.address = fields_.number(pickle.get(value, "address"), "address", place, ~std::uint64_t{0} - 1);
    segment.bytes = fields_.number(pickle.get(value, "total_size"), "total_size", place, kMaxBlockBytes);
    segment.stream = fields_.stream(pickle.get(value, "stream"), place);
    segment.is_large = pickle.text(pickle.get(value, "segment_type")) != "small";
    segment.is_expandable = pickle.truth(pickle.get(value, "is_expandable"));
    if (const PickleValue pool = pickle.get(value, "segment_pool_id"); Pickle::is_sequence(pool)) {
      fields_.spend(pickle.size(pool));
      // A pair, of which one number is not 0: a CUDA graph's or a MemPool's.
      pickle.for_each(pool, [&](std::uint64_t, PickleValue part) {
        bool ok = false;
        if (segment.pool == 0 && pickle.truth(part))
          segment.pool = std::max<std::uint64_t>(1, pickle.unsigned_int(part, ok));
      });
    }
    const PickleValue index = pickle.get(value, "device");
    const std::int64_t device_index =
        index.kind() == Kind::kNone
            ? 0
            : static_cast<std::int64_t>(fields_.number(index, "device", place, SnapshotFields::kMaxDevices));
    Segment& kept = device(device_index).segments.emplace_back(std::move(segment));

    const PickleValue blocks = pickle.get(value, "blocks");
    if (!Pickle::is_sequence(blocks)) fields_.fail(place, "'blocks' is not a list");
    fields_.spend(pickle.size(blocks));
    std::uint64_t next = kept.address;
    pickle.for_each(blocks,
                    [&](std::uint64_t i, PickleValue block) { next = this->block(block, kept, next, place, i); });
    kept.blocks.shrink_to_fit();
  }

  /// Returns the address after the block: old files state none and tile the segment.
  std::uint64_t block(PickleValue value, Segment& segment, std::uint64_t next, const std::string& segment_place,
                      std::uint64_t index) {
    const Pickle& pickle = fields_.pickle;
    const auto place = [&] { return SnapshotFields::at(segment_place + ".blocks", index); };
    if (!fields_.is_small_dict(value)) fields_.fail(place(), "is not a block");
    const std::string_view state = pickle.text(pickle.get(value, "state"));
    const PickleValue stated = pickle.get(value, "address");
    bool ok = false;
    const std::uint64_t bytes = pickle.unsigned_int(pickle.get(value, "size"), ok);
    if (!ok || bytes > kMaxBlockBytes) fields_.fail(place(), "'size' is missing, not an integer or out of range");
    const std::uint64_t address =
        stated.kind() == Kind::kNone ? next : fields_.number(stated, "address", place(), ~std::uint64_t{0} - 1);
    if (state == "active_allocated" || state == "active_pending_free" || state == "active_awaiting_free") {
      BlockInfo live{.address = address,
                     .bytes = bytes,
                     .requested_bytes = bytes,
                     .state = state == "active_allocated" ? BlockState::kActive : BlockState::kAwaitingStream};
      if (const PickleValue requested = pickle.get(value, "requested_size"); requested.kind() != Kind::kNone) {
        live.requested_bytes = fields_.number(requested, "requested_size", place(), kMaxBlockBytes);
      }
      live.stack = stacks_.stack(pickle.get(value, "frames"));
      users_of_block(pickle.get(value, "history"), live, place);
      if (live.requested_bytes == 0 || live.requested_bytes > bytes) live.requested_bytes = bytes;
      if (bytes != 0) segment.blocks.push_back(live);
    } else if (state != "inactive") {
      fields_.fail(place(), "unknown state '" + std::string(state.substr(0, 40)) + "'");
    }
    return address + bytes;
  }

  /// torch 1.13 and 2.0: who used the block, newest first.
  template <class Place>
  void users_of_block(PickleValue history, BlockInfo& live, const Place& place) {
    const Pickle& pickle = fields_.pickle;
    if (!Pickle::is_sequence(history) || pickle.size(history) == 0) return;
    fields_.spend(pickle.size(history));
    pickle.for_each(history, [&](std::uint64_t i, PickleValue user) {
      if (i != 0 || !fields_.is_small_dict(user)) return;
      const PickleValue real = pickle.get(user, "real_size");
      if (real.kind() != Kind::kNone) live.requested_bytes = fields_.number(real, "real_size", place(), kMaxBlockBytes);
      if (live.stack == 0) live.stack = stacks_.stack(pickle.get(user, "frames"));
    });
  }

  SnapshotFields fields_;
  SnapshotFile file_;
  SnapshotStacks stacks_;
  SnapshotEvents events_;
  std::map<std::int64_t, SnapshotDevice> devices_;
};

}  // namespace

std::vector<Segment> tiled_segments(const SnapshotDevice& device) {
  std::vector<Segment> tiled;
  for (const Segment& segment : device.segments) {
    Segment& copy = tiled.emplace_back(segment);
    copy.blocks.clear();
    std::uint64_t next = segment.address;
    const std::uint64_t end = next + std::min<std::uint64_t>(segment.bytes, ~next);
    const auto gap = [&](std::uint64_t until) {
      if (until > next) copy.blocks.push_back({.address = next, .bytes = until - next});
    };
    for (const BlockInfo& block : segment.blocks) {
      if (block.address < next || block.address >= end) continue;  // of a file that contradicts itself
      gap(block.address);
      copy.blocks.push_back(block);
      next = block.address + std::min<std::uint64_t>(block.bytes, end - block.address);
    }
    gap(end);
  }
  std::ranges::sort(tiled, {}, [](const Segment& segment) -> std::uint64_t { return segment.address; });
  return tiled;
}

SnapshotFile read_snapshot_file(InputFile& input, const ReadOptions& options) {
  constexpr double kPickleShare = 0.85;  // of the time; its events are decoded in the rest
  std::optional<WorkPart> part(std::in_place, "reading", 0, kPickleShare);
  Decoder decoder(input, options);
  part.emplace("reading", kPickleShare, 1);
  return decoder.decode();
}

}  // namespace tenon::replay
