// Stacks of a trace as frames, which memory/history/call_site judges.
#include <tenon/memory/history/call_site.h>
#include <tenon/replay/results/own_frames.h>

namespace tenon::replay {

std::vector<std::uint32_t> own_frames(const Trace& trace, StackId stack) {
  const std::vector<std::uint32_t>& frames = trace.stacks.stacks[stack];
  std::vector<std::uint32_t> own;
  for (const std::size_t i : tenon::own_frames(trace.stacks.frames_of(stack))) own.push_back(frames[i]);
  return own;
}

std::string call_site(const Trace& trace, StackId stack, bool names_all) {
  return tenon::call_site(trace.stacks.frames_of(stack), names_all);
}

}  // namespace tenon::replay
