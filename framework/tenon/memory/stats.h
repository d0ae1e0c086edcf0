// MemoryStats: the figures of one allocator, as the host sees them from outside plus what the policy reports itself.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/allocator.h>
#include <tenon/memory/purpose.h>

#include <array>
#include <cstdint>
#include <string>

namespace tenon {

/// All byte figures in bytes. requested <= allocated <= reserved at any moment.
struct MemoryStats {
  Stat requested_bytes;  ///< live, as asked for
  Stat allocated_bytes;  ///< live, after the policy's rounding (Block::bytes)
  Stat reserved_bytes;   ///< taken from the source and not given back, whether or not it is mapped
  Stat allocations;      ///< live blocks

  std::int64_t device_allocations = 0;  ///< successful acquire/create calls, growths of a driver's pool
  std::int64_t device_frees = 0;        ///< release/destroy calls, likewise
  std::int64_t device_maps = 0;
  std::int64_t device_unmaps = 0;
  std::int64_t device_synchronizations = 0;  ///< with all streams
  std::int64_t device_waits = 0;             ///< for one ticket
  std::int64_t ooms = 0;                     ///< requests that could not be served

  Stat segments;  ///< acquired and not yet released
  /// As PyTorch's num_device_alloc and num_device_free: an acquire is one, and so is mapping or unmapping one range of
  /// adjacent pages, however many calls that takes.
  std::int64_t device_growths = 0;
  std::int64_t device_shrinks = 0;

  std::array<Stat, kPurposeCount> requested_by_purpose;
  /// The same by what the bytes are made of, [purpose][kind]: each has a peak of its own.
  std::array<std::array<Stat, kElementKindCount>, kPurposeCount> requested_by_element;
  PolicyStats policy;  ///< what the policy reports itself

  /// Calls to the source that took or gave memory.
  std::int64_t device_calls() const { return device_allocations + device_frees + device_maps + device_unmaps; }
};

/// Requested bytes of the blocks that carry one label.
struct LabelUsage {
  std::string label;
  Stat requested_bytes;
};

}  // namespace tenon
