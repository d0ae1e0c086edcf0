// RecordedAddresses: a replay's segments lie where those of the recording did.
//
// Of several free blocks that fit equally, PyTorch takes the one with the lowest address, and where cudaMalloc puts a
// segment differs from process to process. A replay of the recorded allocator decides as it did only on its addresses.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/sources/address_ranges.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/trace/trace.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>

namespace tenon::replay {

/// Whether the policy has PyTorch's two ways to choose among equal free blocks: by the age of their segments, as since
/// May 2026 (pytorch#183591), or by address.
bool knows_ties(const StackConfig& policy);
StackConfig with_ties_by_address(StackConfig policy);

/// What a replay of that policy is given as segments; empty where the policy is not the recorded one, or the file does
/// not say where its segments lay. A recording that began with segments in use is replayed from nothing by other means.
std::span<const RecordedSegment> segments_for(const Trace& trace, const StackConfig& policy);

/// Not thread-safe.
class TENON_EXPORT RecordedAddresses {
 public:
  TENON_API explicit RecordedAddresses(std::span<const RecordedSegment> acquired);

  /// Where the next recorded segment of that size lay, in place of `address`; `address` itself where there is none, or
  /// where it shares a byte with what is in use.
  TENON_API void* place(void* address, std::size_t bytes);
  /// What place() was given for it.
  TENON_API void* give_back(void* address);

 private:
  std::unordered_map<std::uint64_t, std::deque<std::uint64_t>> next_;  ///< by size, in order
  AddressRanges<void*> in_use_;                                        ///< of those placed: what they stand for
};

}  // namespace tenon::replay
