// The history of a snapshot: device_traces, with external_annotations as marks between its entries.
#pragma once

#include <tenon/replay/formats/pytorch/snapshot_fields.h>
#include <tenon/replay/formats/pytorch/snapshot_stacks.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::replay {

class SnapshotEvents {
 public:
  SnapshotEvents(SnapshotFields& fields, SnapshotStacks& stacks, bool with_times);

  /// Before the first list: what is not a list, or too long, is left out.
  void annotations(PickleValue list);
  /// The entries of one device, at `place` of the file, with their marks. An unknown action is kOther.
  void of_device(PickleValue list, const std::string& place, SnapshotDevice& device);

 private:
  enum Field : int { kAction, kAddress, kDeviceFree, kSize, kStream, kTime, kFrames, kFieldCount };
  using Values = std::array<PickleValue, kFieldCount>;
  using Positions = std::array<std::int16_t, kFieldCount>;
  struct Annotation {
    std::int64_t time = 0;
    std::optional<std::int64_t> device;  ///< empty: of all
    std::string name;
  };

  MemoryEvent event(PickleValue value, const std::string& list, std::uint64_t index, std::int64_t& time);
  Values values_of(PickleValue entry);
  HistoryAction action(PickleValue value, const std::string& list, std::uint64_t index);
  const Positions& positions(std::uint32_t shape);

  SnapshotFields& fields_;
  SnapshotStacks& stacks_;
  bool with_times_;
  std::array<std::uint32_t, kFieldCount> field_ids_{};
  std::vector<Positions> positions_;  ///< by shape: where each field stands
  std::vector<bool> positions_known_;
  std::vector<Annotation> annotations_;  ///< by time
  PickleValue last_action_value_;
  HistoryAction last_action_ = HistoryAction::kOther;
};

}  // namespace tenon::replay
