// MemorySnapshot: a device's memory as it stands, in the terms of torch.cuda.memory._snapshot(), as plain data.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

struct SnapshotBlock {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  std::size_t requested_bytes = 0;
  BlockState state = BlockState::kFree;
  StackId stack = 0;  ///< that allocated it; 0 where none was taken
};

/// One piece of memory from the device. An expandable segment gives one for each contiguous mapped range.
struct SnapshotSegment {
  std::uint64_t address = 0;
  std::size_t total_bytes = 0;      ///< sum of its blocks
  std::size_t allocated_bytes = 0;  ///< of blocks handed out
  std::size_t active_bytes = 0;     ///< with those that wait for a stream
  std::size_t requested_bytes = 0;  ///< of active blocks, as asked for
  StreamRef stream;
  bool is_large = true;
  bool is_expandable = false;
  std::uint64_t pool = 0;
  std::vector<SnapshotBlock> blocks;  ///< left to right, without gaps
};

struct MemorySnapshot {
  Device device;
  std::string allocator;                                     ///< name of the policy
  std::vector<std::pair<std::string, std::string>> options;  ///< all of its options
  std::vector<SnapshotSegment> segments;                     ///< by address
  std::vector<HistoryEvent> events;                          ///< oldest first; empty unless a history is recorded
  std::uint64_t events_lost = 0;                             ///< older ones that the ring did not keep
  std::vector<std::vector<StackFrame>> stacks;               ///< by StackId; [0] is empty

  TENON_API std::size_t reserved_bytes() const;
  TENON_API std::size_t active_bytes() const;
};

/// Of one allocator; with the events and stacks of `history`, where there is one.
TENON_API MemorySnapshot take_snapshot(Device device, const AllocatorStack& allocator, const History* history);

}  // namespace tenon
