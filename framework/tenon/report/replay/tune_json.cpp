// The result of a search as JSON. Declared in tune_report.h.
#include <tenon/replay/results/result_document.h>
#include <tenon/report/replay/own_advice.h>
#include <tenon/report/replay/tune_report.h>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace tenon {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const replay::Trust& trust, const std::string& trace) {
  const replay::Fidelity& fidelity = trust.fidelity;
  Json json;
  json["trace"] = trace;
  json["known"] = fidelity.is_known;
  const std::string refusal = trust.refusal.substr(0, trust.refusal.find('\n'));
  json["exact"] = fidelity.is_exact && refusal.empty();  // of a part that says nothing of the whole
  json["settings"] = fidelity.settings;
  json["recorded_peak_bytes"] = fidelity.recorded_peak_bytes;
  json["replayed_peak_bytes"] = fidelity.replayed_peak_bytes;
  json["recorded_device_calls"] = fidelity.recorded_actions;
  json["matching_device_calls"] = fidelity.matching_actions;
  json["common_device_calls"] = fidelity.common_actions;
  json["sentence"] = refusal.empty() ? fidelity.sentence() : refusal;
  json["reserved_at_start_bytes"] = trust.reserved_at_start_bytes;
  json["caveats"] = trust.caveats;
  if (!refusal.empty()) json["caveats"].push_back(refusal);
  return json;
}

/// What one of Tenon's own saves, and what using it takes; null for the others.
Json saving_of(const replay::Candidate& candidate, const std::string& history) {
  if (!candidate.saving) return nullptr;
  const OwnAdvice own{.label = candidate.label, .policy = candidate.policy, .is_planned = candidate.is_planned};
  const std::string command = plan_command(own, {.file = history});
  Json json;
  json["than"] = candidate.saving->than;
  json["peak_reserved_bytes"] = candidate.saving->bytes;
  json["fraction"] = candidate.saving->fraction;
  json["safe_from_bytes"] = candidate.saving->safe_bytes ? Json(*candidate.saving->safe_bytes) : Json(nullptr);
  json["toml"] = own_toml(own, {.file = history});
  json["plan_command"] = command.empty() ? Json(nullptr) : Json(command);
  return json;
}

/// One setting.
Json json_of(const replay::Candidate& candidate, const std::string& history) {
  Json row;
  row["setting"] = candidate.label;
  row["kind"] = candidate.is_pytorch ? "pytorch" : "tenon";
  row["peak_reserved_bytes"] = candidate.peak_reserved_bytes;
  row["excess"] = candidate.relative_peak - 1;
  row["device_calls"] = candidate.device_calls;
  row["safe_from_bytes"] = candidate.safe_from_bytes ? Json(*candidate.safe_from_bytes) : Json(nullptr);
  row["safe_from_is_smallest"] = candidate.is_smallest;
  row["from_plan"] = candidate.is_planned;
  row["saving"] = saving_of(candidate, history);
  row["ooms_at_capacity"] = candidate.ooms_at_capacity ? Json(*candidate.ooms_at_capacity) : Json(nullptr);
  row["pareto"] = candidate.is_pareto;
  row["baseline"] = candidate.is_baseline;
  row["recommended"] = candidate.is_recommended;
  row["peak_at_capacity_bytes"] = candidate.ooms_at_capacity ? Json(candidate.peak_at_capacity) : Json(nullptr);
  row["sensitivity_is_sampled"] = candidate.is_sampled;
  row["examined_from_bytes"] = candidate.is_sampled ? Json(nullptr) : Json(candidate.examined_from_bytes);
  row["sensitivity"] = Json::array();
  for (const replay::CapacityPoint& point : candidate.sensitivity)
    row["sensitivity"].push_back({{"capacity_bytes", point.capacity_bytes}, {"ooms", point.ooms}});
  return row;
}

Json recommendation_of(const replay::TuneResult& result) {
  const auto best = std::ranges::find_if(result.finalists, &replay::Candidate::is_recommended);
  if (best == result.finalists.end()) return nullptr;
  Json recommendation = Json::object();
  recommendation["PYTORCH_ALLOC_CONF"] = result.recommended_conf;
  recommendation["PYTORCH_CUDA_ALLOC_CONF"] = result.recommended_conf;
  recommendation["toml"] = result.recommended_toml;
  recommendation["safe_from_bytes"] = best->safe_from_bytes ? Json(*best->safe_from_bytes) : Json(nullptr);
  recommendation["peak_reserved_bytes"] = best->peak_reserved_bytes;
  return recommendation;
}

}  // namespace

std::string tune_json(const replay::TuneResult& result, const TuneSubject& subject,
                      const std::string& environment_json) {
  Json json = replay::begin_result_document<Json>(environment_json);
  json["traces"] = subject.files;
  json["peak_requested_bytes"] = result.peak_requested_bytes;
  json["refused"] = nullptr;
  json["evaluated"] = result.evaluated;
  json["space_size"] = result.space_size;
  json["exhaustive"] = result.is_exhaustive;
  json["interrupted"] = result.is_interrupted;
  json["recorded_conf"] = result.recorded_conf;
  json["recorded_confs"] = result.recorded_confs;
  json["dropped_settings"] = result.dropped_settings;
  json["baseline_is_recorded"] = result.is_baseline_recorded;
  json["seconds"] = result.seconds;
  json["rows"] = Json::array();
  for (const replay::Candidate& candidate : result.finalists)
    json["rows"].push_back(json_of(candidate, subject.files.front()));
  json["recommendation"] = recommendation_of(result);
  json["fidelity"] = Json::array();
  for (std::size_t i = 0; i < subject.traces.size(); ++i)
    json["fidelity"].push_back(json_of(result.trust[i], subject.traces[i].name));
  return replay::text_of_document(json);
}

std::string tune_refusal_json(const std::string& trace, const replay::Trust& trust,
                              const std::vector<std::string>& files, const std::string& environment_json) {
  Json json = replay::begin_result_document<Json>(environment_json);
  json["traces"] = files;
  json["refused"] = {{"trace", trace}, {"reason", trust.refusal}};
  json["rows"] = Json::array();
  json["recommendation"] = nullptr;
  json["fidelity"] = Json::array({json_of(trust, trace)});
  return replay::text_of_document(json);
}

}  // namespace tenon
