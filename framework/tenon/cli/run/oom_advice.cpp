// The hint of an OutOfMemory, from a replay.
#include <tenon/cli/run/oom_advice.h>

#include <tenon/memory/layers/budget.h>
#include <tenon/memory/stack/for_trial.h>
#include <tenon/memory/stack/oom.h>
#include <tenon/replay/advise/diagnosis.h>
#include <tenon/report/run/attribution_report.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::cli {

std::optional<replay::FitReport> replay_failure(const StackConfig& config, const replay::Recorder& recorder,
                                                OutOfMemoryInfo& info) {
  if (purpose_over_budget(info)) return std::nullopt;  // which no other allocator would change
  // What this process could have had: other processes may hold the rest of the device.
  std::size_t capacity = info.capacity_bytes == 0 ? 0 : info.reserved_bytes + info.device_free_bytes;
  if (info.limit_bytes != 0) capacity = capacity == 0 ? info.limit_bytes : std::min(capacity, info.limit_bytes);
  const replay::Trace trace = recorder.tail("the failed run");
  if (capacity == 0 || trace.facts.allocations == 0) return std::nullopt;
  StackConfig policy = for_trial(config);
  policy.layers.clear();
  load_all_plugins();
  replay::FitReport report =
      replay::what_would_fit(trace, {replay::spec_of(policy), policy},
                             replay::other_allocators(policy, trace.facts.max_request_bytes), capacity);
  report.lost_events = recorder.lost_events();
  if (!report.is_reproduced()) return report;                           // the hint of the moment stands
  const bool guesses_at_others = oom_cause(info) == OomCause::kPieces;  // which the replay knows
  const replay::FitAttempt* const best = report.best();
  std::string hint = report.sentence();
  if (best != nullptr) {
    hint += fmt::format(" up to this request; set allocator.name=\"{}\"", replay::spec_of(best->policy));
  } else if (!guesses_at_others && !info.hint.empty()) {
    hint = info.hint + "; " + hint;
  }
  info.hint = std::move(hint);
  return report;
}

std::string explained_failure(RunRecord& record, const ExperimentConfig& experiment) {
  const auto& attribution = record.result.attribution;
  std::string text = attribution ? failure_text(*attribution) : std::string();
  if (!experiment.section("report").boolean("replay_ooms")) return text;
  shutdown();
  SavingChanges savings = changes_that_save(experiment);
  if (savings.changes.empty()) return text;
  text += savings.text();
  if (!attribution) text += "Which modules held it says report.attribution=true.\n";
  record.savings = std::move(savings);
  return text;
}

}  // namespace tenon::cli
