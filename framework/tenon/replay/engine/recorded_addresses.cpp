// Segments of a size lie where the recording had them, one after the other.
#include <tenon/core/error.h>
#include <tenon/replay/engine/recorded_addresses.h>
#include <tenon/runtime/conf_policy.h>

#include <algorithm>

namespace tenon::replay {

namespace {

constexpr char kTies[] = "ties";
constexpr std::uint64_t kAlignment = 512;               // of what MemorySource::acquire gives
constexpr std::uint64_t kEnd = std::uint64_t{1} << 52;  // from here on are the addresses of AddressOnlySource

bool is_plausible(const RecordedSegment& segment) {
  return segment.address != 0 && segment.address % kAlignment == 0 && segment.address < kEnd && segment.bytes != 0 &&
         segment.bytes <= kEnd - segment.address;
}

}  // namespace

bool knows_ties(const StackConfig& policy) {
  return std::ranges::any_of(policy.options.schema(), [](const OptionSpec& one) { return one.name == kTies; });
}

StackConfig with_ties_by_address(StackConfig policy) {
  policy.options.set_text(kTies, "address");
  return policy;
}

std::span<const RecordedSegment> segments_for(const Trace& trace, const StackConfig& policy) {
  if (!trace.recorded || !trace.recorded->is_whole || trace.recorded->acquired.empty()) return {};
  try {
    StackConfig recorded = policy_of_conf(trace.recorded->pytorch_conf);
    if (recorded.policy.name != policy.policy.name) return {};
    // Which of equal blocks is taken is no setting of PyTorch's: its versions differ in it.
    if (knows_ties(policy)) recorded.options.set_text(kTies, policy.options.text(kTies));
    if (recorded.options.spec() != policy.options.spec()) return {};
    return trace.recorded->acquired;
  } catch (const Error&) {  // settings of another version
    return {};
  }
}

RecordedAddresses::RecordedAddresses(std::span<const RecordedSegment> acquired) {
  for (const RecordedSegment& segment : acquired) {
    if (is_plausible(segment)) next_[segment.bytes].push_back(segment.address);
  }
}

void* RecordedAddresses::place(void* address, std::size_t bytes) {
  const auto queue = next_.find(bytes);
  if (queue == next_.end() || queue->second.empty()) return address;
  const std::uint64_t recorded = queue->second.front();
  queue->second.pop_front();
  if (!in_use_.add(recorded, recorded + bytes, address).second) return address;
  return reinterpret_cast<void*>(recorded);
}

void* RecordedAddresses::give_back(void* address) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  void* const* const found = in_use_.overlapping(begin, begin + 1);
  if (found == nullptr) return address;
  void* const stands_for = *found;
  in_use_.remove(begin);
  return stands_for;
}

}  // namespace tenon::replay
