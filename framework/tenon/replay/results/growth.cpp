// Where steps end, and the growth between them. Sites and their series: site_series.h.
#include <tenon/memory/history/growth.h>
#include <tenon/replay/results/growth.h>
#include <tenon/replay/results/own_frames.h>
#include <tenon/replay/results/site_series.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tenon::replay {

namespace {

constexpr std::size_t kMostEnds = 64;  ///< of more steps some are left out, evenly
constexpr const char* kByMarks = "marks";
constexpr std::size_t kWarmup = 2;  ///< steps whose blocks live on in every program

/// Calls `visit(entry, event, allocation)` for each counted event, with its number and the number of its allocation.
template <class Visit>
void each_event(const Trace& trace, Visit visit) {
  std::uint64_t event = 0;
  std::size_t allocation = 0;
  for (const TraceEvent& entry : trace.events) {
    visit(entry, event, allocation);
    if (entry.kind == EventKind::kAllocate) ++allocation;
    if (is_counted(entry.kind)) ++event;
  }
}

bool is_step(const std::string& mark) {
  return mark.starts_with("step") || mark.starts_with("iteration") || mark.starts_with("ProfilerStep");
}

/// The count that many requests have in common, least first: a layer that there is twelve times has twelve times as
/// many.
std::uint64_t steps_by_counts(const std::map<Request, std::uint64_t>& counts) {
  std::map<std::uint64_t, std::size_t> how_many;
  std::size_t all = 0;
  for (const auto& [request, count] : counts)
    if (count >= kLeastStepsOfGrowth) ++how_many[count], ++all;
  for (const auto& [count, requests] : how_many)
    if (10 * requests >= all && (requests >= 2 || all == 1)) return count;
  return 0;
}

/// What is allocated once in each layer looks like a step too, and in one forward pass more lives with every layer. But
/// a step gives back most of what it takes, or has a backward pass.
class StepEvidence {
 public:
  explicit StepEvidence(const Trace& trace) : trace_(trace) {
    for (const StackFrame& frame : trace.stacks.frames)
      is_backward_.push_back(frame.name.find("backward") != std::string::npos);
  }

  void take(const TraceEvent& entry, std::size_t allocation) {
    if (entry.kind == EventKind::kFree) live_ -= entry.bytes;
    if (entry.kind != EventKind::kAllocate) return;
    live_ += entry.bytes;
    peak_ = std::max(peak_, live_);
    (in_backward(stack_of(trace_, allocation)) ? has_backward_ : has_other_) = true;
  }

  void end_step() {
    if (ends_++ > 0) {
      amplitudes_ += static_cast<double>(peak_ - start_);
      trained_ += has_backward_ && has_other_;
    }
    start_ = peak_ = live_;
    has_backward_ = has_other_ = false;
  }

  bool is_convincing(double bytes_per_step) const {
    const double steps = static_cast<double>(ends_) - 1;
    return trained_ >= 0.9 * steps || 4 * bytes_per_step <= amplitudes_ / steps;
  }

 private:
  bool in_backward(StackId stack) const {
    return stack != 0 &&
           std::ranges::any_of(trace_.stacks.stacks[stack], [&](std::uint32_t frame) { return is_backward_[frame]; });
  }

  const Trace& trace_;
  std::vector<bool> is_backward_;  ///< by frame
  std::uint64_t live_ = 0, start_ = 0, peak_ = 0;
  bool has_backward_ = false, has_other_ = false;
  double amplitudes_ = 0, trained_ = 0;
  std::size_t ends_ = 0;
};

/// By number of allocation.
std::vector<bool> freed_blocks(const Trace& trace) {
  std::vector<std::size_t> allocation_in(trace.slot_count);
  std::vector<bool> is_freed(trace.facts.allocations);
  each_event(trace, [&](const TraceEvent& entry, std::uint64_t, std::size_t allocation) {
    if (entry.kind == EventKind::kAllocate) allocation_in[entry.slot] = allocation;
    if (entry.kind == EventKind::kFree) is_freed[allocation_in[entry.slot]] = true;
  });
  return is_freed;
}

enum class Beat {
  kReturned,  ///< a request whose blocks are mostly given back: caches and leaks may agree in how often they come
  kAny,
};

/// Leaves out the requests of call sites whose sizes come unequally often: there nothing comes once a step, but by
/// chance as often as what else is made for a batch of that length.
void leave_out_irregular(std::map<Request, std::uint64_t>& counts) {
  constexpr double kRegular = 0.9;
  std::map<StackId, std::map<std::uint64_t, std::uint64_t>> blocks;  // by count
  for (const auto& [request, count] : counts) blocks[std::get<0>(request)][count] += count;
  std::erase_if(counts, [&](const auto& counted) {
    if (std::get<0>(counted.first) == 0) return false;
    std::uint64_t all = 0, as_often = 0;
    for (const auto& [count, of_count] : blocks[std::get<0>(counted.first)]) {
      all += of_count;
      if (count % counted.second == 0) as_often += of_count;
    }
    return static_cast<double>(as_often) < kRegular * static_cast<double>(all);
  });
}

/// Ends of steps at a request that comes once in each; false where there is none.
bool told_by_requests(const Trace& trace, const std::vector<bool>& is_freed, Beat beats, bool of_any_size,
                      Steps& steps) {
  const auto request_at = [&](const TraceEvent& entry, std::size_t allocation) {
    Request request = request_of(trace, entry, allocation);
    if (of_any_size) std::get<1>(request) = 0;
    return request;
  };
  const auto is_one = [&](const TraceEvent& entry, std::size_t allocation) {
    return entry.kind == EventKind::kAllocate && allocation >= trace.facts.seeded_blocks &&
           (!of_any_size || stack_of(trace, allocation) != 0);
  };
  std::map<Request, std::uint64_t> counts, given_back;
  std::vector<Request> order;
  each_event(trace, [&](const TraceEvent& entry, std::uint64_t, std::size_t allocation) {
    if (!is_one(entry, allocation)) return;
    const Request request = request_at(entry, allocation);
    if (++counts[request] == 1) order.push_back(request);
    given_back[request] += is_freed[allocation];
  });
  if (beats == Beat::kReturned)
    std::erase_if(counts, [&](const auto& counted) { return 2 * given_back[counted.first] < counted.second; });
  if (!of_any_size) leave_out_irregular(counts);
  const std::uint64_t count = steps_by_counts(counts);
  if (count == 0) return false;
  const auto beat = std::ranges::find_if(order, [&](const Request& request) {
    const auto counted = counts.find(request);
    return counted != counts.end() && counted->second == count;
  });
  each_event(trace, [&](const TraceEvent& entry, std::uint64_t event, std::size_t allocation) {
    if (is_one(entry, allocation) && request_at(entry, allocation) == *beat) steps.ends.push_back(event);
  });
  const StackId stack = std::get<0>(*beat);
  steps.told_by = of_any_size ? "what is allocated at " + call_site(trace, stack)
                              : blocks_of(trace, *beat) + (stack != 0 ? " at " + call_site(trace, stack) : "");
  return true;
}

std::string why_unknown(std::size_t steps) {
  if (steps == 0) return "no mark names a step, and no requests come equally often, as those of a step do";
  return fmt::format("{} too few to tell growth: there have to be more than {}",
                     steps == 1 ? "one step is" : fmt::format("{} steps are", steps), kLeastStepsOfGrowth);
}

}  // namespace

Steps steps_of(const Trace& trace) {
  Steps steps;
  each_event(trace, [&](const TraceEvent& entry, std::uint64_t event, std::size_t) {
    if (entry.kind == EventKind::kMark && is_step(trace.marks[entry.bytes])) steps.ends.push_back(event);
  });
  if (!steps.ends.empty()) {  // of too few marks nothing is told, whatever else comes as often as a step
    steps.told_by = kByMarks;
    return steps;
  }
  // Where every batch has another length, its stacks still come as often.
  const bool has_stacks = !trace.stack_of_allocation.empty();
  const std::vector<bool> is_freed = freed_blocks(trace);
  for (const Beat beats : {Beat::kReturned, Beat::kAny})
    for (const bool of_any_size : {false, true})
      if ((!of_any_size || has_stacks) && told_by_requests(trace, is_freed, beats, of_any_size, steps)) return steps;
  return steps;
}

HistoryGrowth growth_of(const Trace& trace, bool names_all_frames) {
  Steps steps = steps_of(trace);
  const std::size_t all_steps = steps.ends.size();
  if (steps.ends.size() > kLeastStepsOfGrowth + kWarmup)
    steps.ends.erase(steps.ends.begin(), steps.ends.begin() + kWarmup);
  if (steps.ends.size() <= kLeastStepsOfGrowth) {
    HistoryGrowth unknown;
    unknown.unknown_because = why_unknown(all_steps);
    return unknown;
  }
  HistoryGrowth growth{.steps = steps.ends.size() - 1,
                       .told_by = steps.told_by,
                       .is_marked = steps.told_by == kByMarks,
                       .sites = {},
                       .late = {},
                       .begins = steps.ends.front()};
  const std::size_t stride = (steps.ends.size() + kMostEnds - 1) / kMostEnds;
  SiteSeries series(trace, names_all_frames);
  StepEvidence evidence(trace);
  std::size_t next = 0;
  each_event(trace, [&](const TraceEvent& entry, std::uint64_t event, std::size_t allocation) {
    for (; next < steps.ends.size() && event >= steps.ends[next] && is_counted(entry.kind); ++next) {
      if (next % stride == 0) series.end_step();
      evidence.end_step();
    }
    series.take(entry, allocation);
    evidence.take(entry, allocation);
  });
  for (; next < steps.ends.size(); ++next)
    if (next % stride == 0) series.end_step();
  growth.sites = series.growing(static_cast<double>(stride));
  growth.late = series.late(stride);
  double all = 0;
  for (const GrowingSite& site : growth.sites) all += site.bytes_per_step;
  if (growth.is_marked || evidence.is_convincing(all)) return growth;
  HistoryGrowth unknown;
  unknown.unknown_because = fmt::format(
      "{} comes {} times, which may be steps or layers of one: too little is given back in between, and there is no "
      "backward pass",
      steps.told_by, all_steps);
  return unknown;
}

Trace without_growth(const Trace& trace, const HistoryGrowth& growth, bool names_all_frames) {
  const std::vector<bool> is_freed = freed_blocks(trace);
  GrowingRequests grows(growth, trace, names_all_frames);
  const auto is_leaked = [&](const TraceEvent& entry, std::uint64_t event, std::size_t allocation) {
    return !is_freed[allocation] && grows.contain(entry, event, allocation);
  };
  TraceBuilder builder(trace.path);
  std::vector<std::uint32_t> slot_of(trace.slot_count);
  std::vector<bool> is_left_out(trace.slot_count);
  each_event(trace, [&](const TraceEvent& entry, std::uint64_t event, std::size_t allocation) {
    const bool has_block = entry.kind != EventKind::kMark && entry.kind != EventKind::kEmptyCache;
    if (entry.kind == EventKind::kAllocate) is_left_out[entry.slot] = is_leaked(entry, event, allocation);
    if (!has_block || !is_left_out[entry.slot]) builder.repeat(trace, entry, slot_of);
    if (entry.kind == EventKind::kAllocate && allocation + 1 == trace.facts.seeded_blocks) builder.recording_starts();
  });
  return std::move(builder).finish();
}

}  // namespace tenon::replay
