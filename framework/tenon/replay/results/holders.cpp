// Live bytes by stack, up to the event of the peak.
#include <tenon/replay/results/holders.h>

#include <algorithm>
#include <map>

namespace tenon::replay {

std::vector<Holder> holders_at_peak(const Trace& trace) {
  if (trace.stack_of_allocation.empty()) return {};
  std::vector<StackId> stack_of_slot(trace.slot_count);
  std::map<StackId, Holder> live;
  std::uint64_t event = 0;
  std::size_t allocation = 0;
  for (const TraceEvent& entry : trace.events) {
    if (!is_counted(entry.kind)) continue;
    if (entry.kind == EventKind::kAllocate) {
      const StackId stack = trace.stack_of_allocation[allocation++];
      stack_of_slot[entry.slot] = stack;
      live[stack].bytes += entry.bytes;
      ++live[stack].blocks;
    } else if (entry.kind == EventKind::kFree) {
      Holder& holder = live[stack_of_slot[entry.slot]];
      holder.bytes -= entry.bytes;
      --holder.blocks;
    }
    if (event++ == trace.facts.peak_event) break;
  }
  std::vector<Holder> holders;
  for (auto& [stack, holder] : live) {
    holder.stack = stack;
    if (holder.bytes != 0) holders.push_back(holder);
  }
  std::ranges::stable_sort(holders, std::ranges::greater(), &Holder::bytes);
  return holders;
}

std::vector<std::uint64_t> purposes_at_peak(const Trace& trace) {
  if (trace.columns.purposes.empty()) return {};
  std::vector<Purpose> purpose_of_slot(trace.slot_count);
  std::vector<std::uint64_t> live(kPurposeCount);
  std::uint64_t event = 0;
  std::size_t allocation = 0;
  for (const TraceEvent& entry : trace.events) {
    if (!is_counted(entry.kind)) continue;
    if (entry.kind == EventKind::kAllocate) purpose_of_slot[entry.slot] = trace.columns.purposes[allocation++];
    std::uint64_t& bytes = live[static_cast<std::size_t>(purpose_of_slot[entry.slot])];
    if (entry.kind == EventKind::kAllocate) bytes += entry.bytes;
    if (entry.kind == EventKind::kFree) bytes -= entry.bytes;
    if (event++ == trace.facts.peak_event) break;
  }
  return live;
}

}  // namespace tenon::replay
