// Call stacks of a snapshot: each frame and each stack once.
#pragma once

#include <tenon/memory/frame_table.h>
#include <tenon/replay/formats/pytorch/snapshot_fields.h>

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace tenon::replay {

class SnapshotStacks {
 public:
  SnapshotStacks(SnapshotFields& fields, SnapshotFile& file, bool with_stacks)
      : fields_(fields), stacks_(file.stacks), with_stacks_(with_stacks) {}

  /// The stack of a list of frames; 0 without any, or where stacks are not asked for.
  StackId stack(PickleValue frames);

 private:
  std::uint32_t frame(PickleValue value);

  SnapshotFields& fields_;
  CallStacks& stacks_;
  const bool with_stacks_;
  std::unordered_map<std::uint64_t, StackId> stack_of_list_;
  FrameTable frames_{stacks_};
  std::map<std::vector<std::uint32_t>, StackId> stack_ids_;
  std::uint64_t frame_bytes_ = 0;
};

}  // namespace tenon::replay
