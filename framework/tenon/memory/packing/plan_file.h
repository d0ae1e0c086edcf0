// A plan: the requests of a recorded run in their order, each with the place that a packing gave it. The allocator
// `planned` serves a run that asks for the same from it; `tenon plan` and that allocator write it.
//
//   tenon-plan 1
//   name gpt2_adam
//   blocks 2
//   height 12288
//   lower_bound 12288
//   # purpose stream bytes offset size from until
//   activation 0 8192 0 8192 0 2
//   - 0 4000 8192 4032 1 2
//   checksum 8c1fd29b2b7e2c11
//
// Time is counted in requests: a block lives from its own to the one that is made first after its free.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/packing/pack.h>
#include <tenon/memory/packing/problem.h>
#include <tenon/memory/purpose.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::packing {

/// What a recording knows of a request and of how long its block lived.
struct RecordedRequest {
  std::uint64_t bytes = 0;         ///< as requested
  std::uint32_t stream = 0;        ///< streams are numbered in the order of their first requests
  std::optional<Purpose> purpose;  ///< none: the recording does not say
  std::uint64_t alignment = 1;
  std::uint64_t until = 0;  ///< how many requests had been made when it was freed: more than its own number
};

struct PlannedBlock {
  std::uint64_t bytes = 0;
  std::uint32_t stream = 0;
  std::optional<Purpose> purpose;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  ///< from offset on; at least bytes
  std::uint64_t until = 0;
};

struct Plan {
  std::string name;  ///< of the recording
  std::uint64_t height = 0;
  std::uint64_t lower_bound = 0;  ///< no plan of this recording is lower
  std::vector<PlannedBlock> blocks;
};

/// The option of an allocator that serves from a plan: its file. `tenon tune` and `tenon doctor` try whatever has it
/// with a plan of the history.
inline constexpr std::string_view kPlanOption = "plan";

/// Offsets and sizes of plans are multiples of it, as an allocator's blocks are.
inline constexpr std::uint64_t kPlanGranule = 64;

/// The recording as a problem: its buffers are its requests. Throws ValueError where sizes pass kMaxBytes.
TENON_API std::vector<Buffer> buffers_of(const std::vector<RecordedRequest>& recording);
/// With the offsets that were found for those buffers.
TENON_API Plan plan_of(std::string name, const std::vector<RecordedRequest>& recording, const PackResult& result);

TENON_API std::string text_of(const Plan& plan);
/// Throws ConfigError "NAME:LINE: …" for what is not a plan: of another version, cut off, changed (its checksum), with
/// blocks that overlap or end above its height.
TENON_API Plan parse_plan(std::string_view text, const std::string& name);
/// Throws ConfigError as well where the file cannot be read.
TENON_API Plan read_plan(const std::string& path);

}  // namespace tenon::packing
