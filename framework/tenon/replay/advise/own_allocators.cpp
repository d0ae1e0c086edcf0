// Candidates of Tenon's, and the plan that some of them serve from.
#include <tenon/core/files/write_all.h>
#include <tenon/memory/packing/pack.h>
#include <tenon/memory/packing/plan_file.h>
#include <tenon/replay/advise/own_allocators.h>
#include <tenon/replay/planning/history_recording.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace tenon::replay {

namespace {

bool serves_from_a_plan(const OptionSchema& schema) {
  const auto option = std::ranges::find(schema, packing::kPlanOption, &OptionSpec::name);
  return option != schema.end() && option->type == OptionType::kText;
}

/// -1 where the system has no memory for such a file: then nothing is served from a plan.
int file_of(const std::string& text) {
  const int descriptor = ::memfd_create("tenon plan", MFD_CLOEXEC);
  if (descriptor < 0) return -1;
  if (write_all(descriptor, text)) return descriptor;
  ::close(descriptor);
  return -1;
}

}  // namespace

std::vector<FitCandidate> own_allocators(const std::vector<std::string>& also) {
  std::vector<FitCandidate> candidates;
  for (const std::string& name : default_allocators()) {
    FitCandidate candidate{name, allocator_from_spec(name)};
    if (!candidate.policy.policy.traits.pytorch_conf) candidates.push_back(std::move(candidate));
  }
  for (const std::string& spec : also) candidates.push_back({spec, allocator_from_spec(spec)});
  return candidates;
}

PlanOfHistory::PlanOfHistory(const Trace& trace, double seconds, std::function<bool()> is_stopping) {
  if (trace.facts.allocations == 0 || trace.facts.allocations > kMostAllocations) return;
  const std::vector<packing::RecordedRequest> recording = recording_of(trace);
  if (is_stopping && is_stopping()) return;
  const packing::PackResult result = packing::pack(
      packing::buffers_of(recording), {.time_limit_seconds = seconds, .is_stopping = std::move(is_stopping)});
  if (!result.is_stopped) descriptor_ = file_of(text_of(packing::plan_of(trace.name, recording, result)));
}

PlanOfHistory::~PlanOfHistory() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::vector<FitCandidate> PlanOfHistory::allocators() const {
  std::vector<FitCandidate> candidates;
  if (descriptor_ < 0) return candidates;
  for (const std::string& name : allocator_names()) {
    FitCandidate candidate{name, allocator_from_spec(name), true};
    if (!serves_from_a_plan(candidate.policy.options.schema())) continue;
    // One that is tried without a plan serves this history as the others do with it.
    if (!candidate.policy.policy.traits.is_baseline) continue;
    candidate.policy.options.set_text(packing::kPlanOption, fmt::format("/proc/self/fd/{}", descriptor_));
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

std::string plan_name_for(const std::string& history, std::optional<int> device) {
  const std::string base = history.substr(history.rfind('/') + 1);
  const bool is_stream = history == "-" || history == "standard input";
  const std::string name = is_stream ? "history" : base.substr(0, std::max<std::size_t>(base.find('.'), 1));
  return fmt::format("{}{}.plan", name, device ? fmt::format("-{}", *device) : "");
}

StackConfig with_plan_file(const StackConfig& policy, const std::string& history, std::optional<int> device) {
  StackConfig shown = policy;
  shown.options.set_text(packing::kPlanOption, plan_name_for(history, device));
  return shown;
}

}  // namespace tenon::replay
