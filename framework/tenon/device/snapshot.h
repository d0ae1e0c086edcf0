// MemorySnapshot: a device's memory as it stands, in the terms of torch.cuda.memory._snapshot(), as plain data.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/memory/snapshot.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

class History;

struct MemorySnapshot : Snapshot {
  Device device;
  std::string allocator;                                     ///< name of the policy
  std::vector<std::pair<std::string, std::string>> options;  ///< all of its options
  std::uint64_t events_lost = 0;                             ///< older ones that the ring did not keep
};

/// Of one allocator; with the events and stacks of `history`, where there is one.
TENON_API MemorySnapshot take_snapshot(Device device, const AllocatorStack& allocator, const History* history);

}  // namespace tenon
