// Live bytes by stack, up to the event of the peak.
#include <tenon/replay/results/holders.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

namespace tenon::replay {

namespace {

constexpr std::size_t kNamedFrames = 3;
/// Of functions in C++ and C; a name of Python's has a file that ends in .py.
constexpr std::string_view kLibraryNames[] = {"_object*",  // of a binding, in front of its name
                                              "torch::",
                                              "c10::",
                                              "at::",
                                              "void at::",
                                              "THP",
                                              "_Py",
                                              "Py",
                                              "pymain_",
                                              "pyrun_",
                                              "std::",
                                              "_start",
                                              "__libc_",
                                              "execute_native_thread",
                                              "pybind11::"};

/// Functions of PyTorch and of the machine below and around a program's own.
bool is_boilerplate(const StackFrame& frame) {
  if (frame.file == "??" || frame.file.empty()) return true;
  for (const char* part : {"/torch/", "/site-packages/", "/dist-packages/", "/aten/", "/c10/", "/python3"}) {
    if (frame.file.find(part) != std::string::npos) return true;
  }
  if (frame.file.ends_with(".py")) return false;
  for (const char* part : {"/Python/", "/Objects/", "/Modules/", "/Include/"}) {  // CPython's own folders
    if (frame.file.find(part) != std::string::npos) return true;
  }
  return std::ranges::any_of(kLibraryNames, [&](std::string_view begin) { return frame.name.starts_with(begin); });
}

/// Of a stack without a frame of the program's own, as one of the backward pass is: the operator, which says more than
/// the allocator at the bottom.
std::size_t telling_frame(const Trace& trace, const std::vector<std::uint32_t>& frames) {
  for (std::size_t i = frames.size(); i-- > 0;) {  // the outermost first
    const std::string& name = trace.stacks.frames[frames[i]].name;
    if (name.starts_with("torch::autograd::generated::") || name.starts_with("at::_ops::")) return i;
  }
  return 0;
}

}  // namespace

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

std::vector<std::uint32_t> own_frames(const Trace& trace, StackId stack) {
  const std::vector<std::uint32_t>& frames = trace.stacks.stacks[stack];
  std::vector<std::uint32_t> own;
  std::ranges::copy_if(frames, std::back_inserter(own),
                       [&](std::uint32_t frame) { return !is_boilerplate(trace.stacks.frames[frame]); });
  if (own.empty() && !frames.empty()) own.push_back(frames[telling_frame(trace, frames)]);
  return own;
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
  for (const std::uint32_t frame : own_frames(trace, stack)) {
    if (named < kNamedFrames) name(trace.stacks.frames[frame]);
  }
  return site;
}

}  // namespace tenon::replay
