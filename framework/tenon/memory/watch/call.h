// One call of an allocator as plain numbers, which a signal handler can write and another process can read.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <string>

namespace tenon {

enum class Call : std::uint8_t {
  kCreate,
  kAllocate,
  kDeallocate,
  kRecordUse,
  kTrim,
  kComplete,  ///< of the device: a stream gets there
  kWalk,
  kReport,
  kResetStats,
  kCheckInvariants,
  kDestroy
};

struct CallFacts {
  Call call = Call::kCreate;
  std::uint8_t allocator = 0;  ///< which of those that share a board, as its watcher numbers them
  std::uint32_t alignment = 0;
  std::uint64_t bytes = 0, stream = 0, address = 0;
};

/// "allocate".
TENON_API std::string name_of(Call call);
/// "allocate(4096 bytes, alignment 64, stream 0)".
TENON_API std::string text_of(const CallFacts& facts);

}  // namespace tenon
