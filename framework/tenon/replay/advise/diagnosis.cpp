// What was in use, and what could have been.
#include <tenon/core/spec_names.h>
#include <tenon/memory/history/pinned_hole.h>
#include <tenon/replay/advise/diagnosis.h>
#include <tenon/replay/advise/own_allocators.h>
#include <tenon/replay/results/own_frames.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/conf_policy.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tenon::replay {

namespace {

constexpr double kPlanningSeconds = 2;

struct Question {
  bool is_pytorch = true;
  FitCandidate current;
  std::vector<FitCandidate> others;
  std::vector<FitCandidate> own;  ///< Tenon's besides
  std::vector<std::string> dropped_settings;
};

std::string header(const Trace& trace, const char* key) {
  const auto found = trace.header.find(key);
  return found == trace.header.end() ? std::string() : found->second;
}

Question question_of(const Trace& trace, const DiagnosisRequest& request) {
  Question question;
  std::string spec = request.allocator;
  // `tenon run` writes its allocator into what it records.
  if (spec.empty() && request.pytorch_conf.empty()) {
    if (const auto recorded = recorded_policy(trace)) spec = spec_with(recorded->name, recorded->options);
  }
  if (!spec.empty()) {
    question.is_pytorch = false;
    question.current = {spec, allocator_from_spec(spec)};
    question.others = other_allocators(question.current.policy, trace.facts.max_request_bytes);
    for (const std::string& also : request.also) question.others.push_back({also, allocator_from_spec(also)});
    return question;
  }
  std::string conf = request.pytorch_conf;
  if (conf.empty() && trace.recorded) conf = valid_part(trace.recorded->pytorch_conf, &question.dropped_settings);
  question.current = {conf.empty() ? "PyTorch's defaults" : conf, policy_of_conf(conf)};
  question.others = other_pytorch_settings(conf, trace.facts.max_request_bytes);
  question.own = own_allocators(request.also);
  return question;
}

/// What lies in the way of the failed request, in the device's memory at the end.
void find_pins(Diagnosis& diagnosis, const Trace& trace, bool names_all_frames) {
  if (!diagnosis.failed_request || !trace.recorded) return;
  const PinnedHole hole = pinned_hole(trace.recorded->final_segments, diagnosis.failed_request->bytes);
  if (hole.bytes < diagnosis.failed_request->bytes) return;
  diagnosis.hole_bytes = hole.bytes;
  for (const BlockInfo& pin : hole.pins)
    diagnosis.pins.emplace_back(call_site(trace, pin.stack, names_all_frames), pin.bytes);
  std::ranges::stable_sort(diagnosis.pins, std::ranges::greater(), [](const auto& pin) { return pin.second; });
}

/// By call site: two stacks that differ in how they got there are one.
std::vector<std::pair<std::string, Holder>> holders_of(const Trace& trace, bool names_all_frames) {
  std::map<std::string, Holder> by_site;
  for (const Holder& holder : holders_at_peak(trace)) {
    Holder& sum = by_site.try_emplace(call_site(trace, holder.stack, names_all_frames), Holder{.stack = holder.stack})
                      .first->second;
    sum.bytes += holder.bytes;
    sum.blocks += holder.blocks;
  }
  std::vector<std::pair<std::string, Holder>> holders(by_site.begin(), by_site.end());
  std::ranges::stable_sort(holders, std::ranges::greater(), [](const auto& pair) { return pair.second.bytes; });
  return holders;
}

}  // namespace

bool Diagnosis::is_hopeless() const {
  return report.capacity_bytes != 0 && report.peak_requested_bytes > report.capacity_bytes;
}

std::string Diagnosis::how_to_set(const FitAttempt& attempt, bool is_own) const {
  if (is_pytorch && !is_own) return attempt.label;
  return spec_of(attempt.is_planned ? with_plan_file(attempt.policy, file, device) : attempt.policy);
}

std::vector<std::string> Diagnosis::complaints() const {
  std::vector<std::string> sentences;
  if (!report.current.failure.empty() && !is_interrupted) sentences.push_back(report.current.complaint());
  for (const auto* attempts : {&report.others, &report.own})
    for (const FitAttempt& attempt : *attempts)
      if (!attempt.failure.empty()) sentences.push_back(attempt.complaint());
  return sentences;
}

std::optional<RecordedPolicy> recorded_policy(const Trace& trace) {
  RecordedPolicy policy{.name = header(trace, "allocator"),
                        .options = header(trace, "allocator_options"),
                        .plugin = header(trace, "allocator_plugin")};
  return policy.name.empty() ? std::nullopt : std::optional(policy);
}

Diagnosis diagnose(const Trace& trace, const DiagnosisRequest& request) {
  Question question = question_of(trace, request);
  const std::uint64_t capacity =
      request.capacity_bytes != 0 ? request.capacity_bytes : capacity_at_failure(trace).value_or(0);
  Diagnosis diagnosis;
  diagnosis.trace = trace.name;
  diagnosis.file = trace.path;
  if (!trace.ooms.empty()) diagnosis.failed_request = trace.ooms.back();
  diagnosis.is_pytorch = question.is_pytorch;
  const PlanOfHistory plan(trace, kPlanningSeconds, request.is_stopping);
  for (FitCandidate& planned : plan.allocators()) question.own.push_back(std::move(planned));
  diagnosis.report = what_would_fit(trace, question.current, question.others, capacity,
                                    {.is_stopping = request.is_stopping, .own = question.own});
  // What goes to the device for every few requests needs least, and is of no use to anybody who did not ask for it.
  std::erase_if(diagnosis.report.own, [&](const FitAttempt& attempt) {
    return attempt.is_slow && std::ranges::find(request.also, attempt.label) == request.also.end();
  });
  diagnosis.holders = holders_of(trace, request.names_all_frames);
  diagnosis.growth = growth_of(trace, request.names_all_frames);
  if (!diagnosis.growth.sites.empty())
    diagnosis.without_growth = what_would_fit(without_growth(trace, diagnosis.growth, request.names_all_frames),
                                              question.current, {}, capacity, {.is_stopping = request.is_stopping})
                                   .current;
  find_pins(diagnosis, trace, request.names_all_frames);
  diagnosis.purposes = purposes_at_peak(trace);
  if (request.is_stopping && request.is_stopping()) {
    diagnosis.is_interrupted = true;
    diagnosis.is_known = false;
    return diagnosis;
  }
  diagnosis.trust =
      judge(trace, request.pytorch_conf.empty() ? std::nullopt : std::optional<std::string>(request.pytorch_conf));
  diagnosis.dropped_settings = question.dropped_settings;
  if (!question.dropped_settings.empty()) {
    diagnosis.trust.caveats.push_back(fmt::format(
        "{} was recorded with {}, which PyTorch's native allocator does not take: left out, so that what was "
        "in use is not what is replayed",
        trace.name, fmt::join(question.dropped_settings, ", ")));
  }
  diagnosis.is_known = diagnosis.trust.refusal.empty() || diagnosis.is_hopeless();
  return diagnosis;
}

std::string spec_of(const StackConfig& config) { return spec_with(config.policy.name, config.options.spec()); }

}  // namespace tenon::replay
