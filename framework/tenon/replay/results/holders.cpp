// Live bytes by stack, up to the event of the peak.
#include <tenon/replay/results/holders.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace tenon::replay {

namespace {

constexpr std::size_t kNamedFrames = 3;

/// Functions of PyTorch and of the machine below and around a program's own.
bool is_boilerplate(const StackFrame& frame) {
  if (frame.file == "??" || frame.file.empty()) return true;
  for (const char* begin : {"torch::", "c10::", "at::", "void at::", "at_", "THP", "PyTorch", "_Py", "Py",
                            "std::", "__libc_start", "_start", "method_vectorcall", "cfunction_", "pybind11::"}) {
    if (frame.name.starts_with(begin) && !frame.file.ends_with(".py")) return true;
  }
  for (const char* part : {"/torch/", "/site-packages/", "/dist-packages/", "/aten/", "/c10/", "/python3"}) {
    if (frame.file.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::vector<Holder> holders_at_peak(const Trace& trace) {
  if (trace.stacks.of_allocation.empty()) return {};
  std::vector<StackId> stack_of_slot(trace.slot_count);
  std::map<StackId, Holder> live;
  std::uint64_t event = 0;
  std::size_t allocation = 0;
  for (const TraceEvent& entry : trace.events) {
    if (!is_counted(entry.kind)) continue;
    if (entry.kind == EventKind::kAllocate) {
      const StackId stack = trace.stacks.of_allocation[allocation++];
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

std::vector<std::uint32_t> own_frames(const Trace& trace, StackId stack) {
  const std::vector<std::uint32_t>& frames = trace.stacks.stacks[stack];
  std::vector<std::uint32_t> own;
  std::ranges::copy_if(frames, std::back_inserter(own),
                       [&](std::uint32_t frame) { return !is_boilerplate(trace.stacks.frames[frame]); });
  return own.empty() ? frames : own;
}

std::string call_site(const Trace& trace, StackId stack) {
  const std::vector<std::uint32_t>& frames = trace.stacks.stacks[stack];
  if (frames.empty()) return "[no stack]";
  std::string site;
  std::size_t named = 0;
  const auto name = [&](const StackFrame& frame) {
    site += (named++ == 0 ? "" : " < ") + frame.name + " (" + frame.file.substr(frame.file.find_last_of('/') + 1) +
            ":" + std::to_string(frame.line) + ")";
  };
  const bool has_own =
      std::ranges::any_of(frames, [&](std::uint32_t frame) { return !is_boilerplate(trace.stacks.frames[frame]); });
  if (!has_own) {
    name(trace.stacks.frames[frames.front()]);
    return site;
  }
  for (const std::uint32_t frame : own_frames(trace, stack)) {
    if (named < kNamedFrames) name(trace.stacks.frames[frame]);
  }
  return site;
}

}  // namespace tenon::replay
