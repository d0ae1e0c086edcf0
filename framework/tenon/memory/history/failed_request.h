// A request that ran out of memory: of a program that runs, and of a history that was read from a file.
#pragma once

#include <tenon/memory/purpose.h>

#include <cstdint>

namespace tenon {

/// With figures of that moment, 0 and 0 where they are not known.
struct FailedRequest {
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;             ///< handle
  std::uint64_t reserved_bytes = 0;     ///< by its allocator
  std::uint64_t device_free_bytes = 0;  ///< what the device had left
  Purpose purpose = Purpose::kOther;

  /// What the process could have had then; 0: not known.
  std::uint64_t capacity_bytes() const { return reserved_bytes + device_free_bytes; }
};

}  // namespace tenon
