// result.json of a run. Declared in run_report.h.
#include <tenon/report/run/attribution_report.h>
#include <tenon/report/run/run_figures.h>
#include <tenon/report/run/run_report.h>

#include <tenon/core/units.h>
#include <tenon/memory/purpose.h>
#include <tenon/memory/stack/shown_figures.h>
#include <tenon/runtime/environment.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

namespace tenon {

namespace {

using Json = nlohmann::ordered_json;

/// Few and long: each is nearly independent of its neighbours, and twelve are enough for an interval of 99 %.
constexpr std::size_t kStretches = 12;

/// The medians of stretches of equal length, in order: what another run is held against.
Json stretch_medians(const std::vector<double>& values) {
  Json medians = Json::array();
  const std::size_t count = std::min(kStretches, values.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](std::size_t stretch) {
      return values.begin() + static_cast<std::ptrdiff_t>(stretch * values.size() / count);
    };
    medians.push_back(quantile({at(i), at(i + 1)}, 0.5));
  }
  return medians;
}

Json quantiles(const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {{"p25", quantile(values, 0.25)},
          {"p50", quantile(values, 0.5)},
          {"p75", quantile(values, 0.75)},
          {"p90", quantile(values, 0.9)},
          {"p99", quantile(values, 0.99)},
          {"max", quantile(values, 1)},
          {"mean", sum / static_cast<double>(values.size())},
          {"stretch_medians", stretch_medians(values)}};
}

Json memory_json(const ExperimentResult& result) {
  const MemoryStats& stats = result.memory;
  Json memory;
  memory["peak_requested_bytes"] = stats.requested_bytes.peak;
  memory["peak_allocated_bytes"] = stats.allocated_bytes.peak;
  memory["peak_reserved_bytes"] = stats.reserved_bytes.peak;
  const std::optional<std::int64_t> in_steps = peak_in_steps(result);
  memory["peak_allocated_in_steps_bytes"] = in_steps ? Json(*in_steps) : Json(nullptr);
  memory["allocations"] = stats.allocations.allocated;
  for_each_device_count([&](const char* key, std::int64_t count) { memory[key] = count; }, stats);
  const std::optional<double> calls = device_calls_per_step(result);
  memory["device_calls_per_step"] = calls ? Json(*calls) : Json(nullptr);
  memory["warmup_steps"] = result.warmup_steps;
  const std::optional<double> growth = growth_of_steps(result);
  memory["growth_bytes_per_step"] = growth ? Json(std::llround(*growth)) : Json(nullptr);
  memory["ooms"] = stats.ooms;
  memory["oom_recoveries"] = result.oom_recoveries;
  for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
    memory["peak_requested_bytes_by_purpose"][std::string(name_of(static_cast<Purpose>(purpose)))] =
        stats.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
  }
  memory["peak_requested_bytes_by_element"] = element_peaks(stats);
  const bool has_peak = result.peak.allocated_bytes > 0;
  memory["peak_phase"] = has_peak ? Json(std::string(phase_name(result.peak.phase))) : Json(nullptr);
  for (int purpose = 0; purpose < kPurposeCount && has_peak; ++purpose) {
    memory["requested_bytes_by_purpose_in_peak_phase"][std::string(name_of(static_cast<Purpose>(purpose)))] =
        result.peak.requested_by_purpose[static_cast<std::size_t>(purpose)];
  }
  return memory;
}

Json result_block(const ExperimentResult& result, bool has_losses) {
  Json block;
  block["test_accuracy"] = result.epochs.empty() ? Json(nullptr) : Json(result.test_accuracy);
  block["final_loss"] = result.losses.empty() ? Json(nullptr) : Json(result.losses.back());
  const std::string hash = losses_hash(result.losses);
  block["losses_fnv1a64"] = hash.empty() ? Json(nullptr) : Json(hash);
  block["parameters"] = result.parameters;
  block["steps"] = result.steps;
  block["seconds"] = result.seconds;
  block["step_ms"] = quantiles(result.step_ms);
  block["epochs"] = Json::array();
  for (const EpochResult& epoch : result.epochs) {
    block["epochs"].push_back({{"epoch", epoch.epoch},
                               {"train_loss", epoch.train_loss},
                               {"test_loss", epoch.test_loss},
                               {"test_accuracy", epoch.test_accuracy},
                               {"seconds", epoch.seconds}});
  }
  for (const auto& [name, value] : result.figures) {
    block["figures"][name] = name.ends_with("_bytes") ? Json(static_cast<std::int64_t>(value)) : Json(value);
  }
  if (has_losses) block["losses"] = result.losses;
  return block;
}

/// By rank, and which of them had the highest peak.
Json ranks_json(const std::vector<RankMemory>& ranks) {
  Json json = {{"count", ranks.size()}, {"worst_rank", worst_rank(ranks)}, {"memory", Json::array()}};
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    json["memory"].push_back({{"rank", rank},
                              {"peak_requested_bytes", ranks[rank].peak_requested_bytes},
                              {"peak_allocated_bytes", ranks[rank].peak_allocated_bytes},
                              {"peak_reserved_bytes", ranks[rank].peak_reserved_bytes},
                              {"peak_optimizer_state_bytes", ranks[rank].peak_optimizer_state_bytes},
                              {"peak_parameter_bytes", ranks[rank].peak_parameter_bytes},
                              {"peak_gradient_bytes", ranks[rank].peak_gradient_bytes}});
  }
  return json;
}

Json devices_json(const ExperimentResult& result) {
  Json devices = Json::array();
  for (const DeviceResult& device : result.devices) {
    Json json = {{"device", device.device},
                 {"peak_requested_bytes", device.peak_requested_bytes},
                 {"peak_allocated_bytes", device.peak_allocated_bytes},
                 {"peak_reserved_bytes", device.peak_reserved_bytes}};
    for (int purpose = 0; purpose < kPurposeCount; ++purpose)
      json["peak_requested_bytes_by_purpose"][std::string(name_of(static_cast<Purpose>(purpose)))] =
          device.peak_requested_by_purpose[static_cast<std::size_t>(purpose)];
    if (device.stage) {
      json["stage"] = {{"layers", device.stage->layers},
                       {"parameters", device.stage->parameters},
                       {"peak_micro_batches", device.stage->peak_micro_batches}};
    }
    if (device.estimated) {
      json["estimated"] = {{"kernel_ms", device.estimated->kernel_ms},
                           {"copy_ms", device.estimated->copy_ms},
                           {"hidden_copy_ms", device.estimated->hidden_copy_ms},
                           {"idle", device.estimated->idle}};
    }
    if (device.attribution) json["attribution"] = Json::parse(attribution_json(*device.attribution));
    devices.push_back(std::move(json));
  }
  return devices;
}

Json attempt_json(const replay::FitAttempt& attempt) {
  return {{"allocator", attempt.label},
          {"fits", attempt.fits()},
          {"peak_reserved_bytes", attempt.peak_reserved_bytes},
          {"ooms", attempt.ooms},
          {"device_calls", attempt.device_calls}};
}

Json fit_json(const replay::FitReport& report) {
  Json json = {{"capacity_bytes", report.capacity_bytes},
               {"events", report.events},
               {"lost_events", report.lost_events},
               {"failed_event", failed_event(report)},
               {"peak_requested_bytes", report.peak_requested_bytes},
               {"reproduced", report.is_reproduced()},
               {"replayed", attempt_json(report.current)},
               {"others", Json::array()}};
  for (const replay::FitAttempt& attempt : report.others) json["others"].push_back(attempt_json(attempt));
  return json;
}

Json savings_json(const SavingChanges& savings) {
  Json json = {{"peak_requested_bytes", savings.peak_requested_bytes}, {"changes", Json::array()}};
  for (const SavingChange& change : savings.changes)
    json["changes"].push_back({{"setting", change.setting},
                               {"peak_requested_bytes", change.peak_requested_bytes},
                               {"peak_reserved_bytes", change.peak_reserved_bytes},
                               {"fits", change.fits}});
  return json;
}

Json timeline_json(const ExperimentResult& result) {
  Json timeline = Json::array();
  for (const MemorySample& sample : result.timeline) {
    timeline.push_back({{"step", sample.step},
                        {"requested_bytes", sample.requested_bytes},
                        {"allocated_bytes", sample.allocated_bytes},
                        {"reserved_bytes", sample.reserved_bytes},
                        {"peak_allocated_bytes", sample.peak_allocated_bytes}});
  }
  return timeline;
}

void add_ending(Json& json, const RunRecord& record) {
  json["status"] = to_string(record.status);
  json["error"] = record.error.empty() ? Json(nullptr) : Json(record.error);
  json["exit_code"] = record.exit_code;
  for (const LayerReport& layer : record.layers) {
    if (layer.entries.empty()) continue;
    Json entries = Json::array();  // a name may come again, as each leak of `track` does
    for (const auto& [name, value] : layer.entries) entries.push_back({{"name", name}, {"value", value}});
    json["layer_reports"].push_back({{"layer", layer.layer}, {"entries", entries}});
  }
  for (const RunFault& fault : record.faults)
    json["disqualified"].push_back(fault.allocator.empty() ? fault.what : fault.allocator + " " + fault.what);
  if (!record.crash) return;
  const RunCrash& crash = *record.crash;
  json["crash"] = {{"signal", crash.signal == 0 ? Json(nullptr) : Json(crash.signal)},
                   {"call", crash.call.empty() ? Json(nullptr) : Json(crash.call)},
                   {"during", crash.during.empty() ? Json(nullptr) : Json(crash.during)},
                   {"stack", crash.stack}};
}

}  // namespace

std::string ended_result_json(const std::string& result_json, const RunRecord& record, bool has_figures) {
  Json json = Json::parse(result_json);
  add_ending(json, record);
  if (has_figures) {
    json["seconds"] = record.seconds;
    json["result"] = result_block(record.result, json["result"].contains("losses"));
    json["memory"] = memory_json(record.result);
    if (json.contains("timeline")) json["timeline"] = timeline_json(record.result);
    if (record.result.steps == 0) {  // there was nothing to read figures off
      for (const char* key : {"peak_requested_bytes", "peak_allocated_bytes", "peak_reserved_bytes"})
        json["memory"][key] = nullptr;
    }
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::string> disqualifications(const std::string& allocator, const std::vector<RunFault>& faults) {
  std::vector<std::string> sentences;
  for (const RunFault& fault : faults) {
    const std::string who = fault.allocator.empty() ? fmt::format("allocator '{}'", allocator) : fault.allocator;
    sentences.push_back(fmt::format("{} is disqualified: it {}", who, fault.what));
  }
  return sentences;
}

namespace {

/// "peak_requested_bytes", "1048576" as "peak requested 1.00 MiB".
std::string entry_text(std::string name, const std::string& value) {
  constexpr std::string_view kBytes = "_bytes";
  std::size_t bytes = 0;
  const char* const end = value.data() + value.size();
  const bool is_size = name.ends_with(kBytes) && std::from_chars(value.data(), end, bytes).ptr == end;
  if (is_size) name.resize(name.size() - kBytes.size());
  std::ranges::replace(name, '_', ' ');
  return fmt::format("{} {}", name, is_size ? format_bytes(bytes) : value);
}

}  // namespace

std::string layers_remark(const std::vector<LayerReport>& layers) {
  std::string text;
  for (const LayerReport& layer : layers) {
    if (layer.entries.empty()) continue;
    text += fmt::format("layer {}: ", layer.layer);
    for (std::size_t i = 0; i < layer.entries.size(); ++i)
      text += (i == 0 ? "" : "; ") + entry_text(layer.entries[i].first, layer.entries[i].second);
    text += '\n';
  }
  return text;
}

std::vector<std::string> specs_of(const std::vector<RunFault>& faults) {
  std::vector<std::string> specs;
  for (const RunFault& fault : faults)
    if (!fault.spec.empty()) specs.push_back(fault.spec);
  return specs;
}

static Json host_json(const measure::HostNoise& noise) {
  return {{"load_average", noise.load},
          {"cores", noise.cores},
          {"stolen_share", noise.stolen_share},
          {"warnings", noise.of_others()}};
}

std::string result_json(const Config& config, const RunRecord& record) {
  const ExperimentConfig experiment = config.experiment();
  Json json;
  json["schema_version"] = 1;
  json["name"] = experiment.name;
  for (const char* key : {"status", "error", "exit_code"}) json[key] = nullptr;  // their place; add_ending fills them
  json["seconds"] = record.seconds;
  json["earlier_seconds"] = record.earlier_seconds;
  json["cells_at_a_time"] = record.cells_at_a_time;
  json["host"] = host_json(measure::host_noise(record.host, measure::host_state()));
  json["device"] = experiment.device.str();
  json["allocator"] = experiment.allocator.policy.name;
  json["allocator_options"] = experiment.allocator.options.spec();
  json["layers"] = Json::array();
  for (const LayerConfig& layer : experiment.allocator.layers) json["layers"].push_back(layer.name);
  json["result"] = result_block(record.result, experiment.section("report").boolean("losses"));
  json["memory"] = memory_json(record.result);
  if (!record.result.ranks.empty()) json["ranks"] = ranks_json(record.result.ranks);
  json["memory"]["leaked_bytes"] = record.leaked_bytes;
  if (!record.result.devices.empty()) json["devices"] = devices_json(record.result);
  if (record.estimate) json["memory_estimate"] = Json::parse(estimate_json(*record.estimate, &record.result.memory));
  if (!record.recorded.empty()) json["recorded"] = record.recorded;
  if (record.result.attribution) json["attribution"] = Json::parse(attribution_json(*record.result.attribution));
  if (record.savings) json["savings"] = savings_json(*record.savings);
  if (record.would_fit) json["out_of_memory"] = fit_json(*record.would_fit);
  add_ending(json, record);
  for (const ExplainedSetting& setting : config.explain()) {
    json["settings"][setting.key] = {{"value", setting.text}, {"from", setting.winner.str()}};
  }
  if (experiment.section("report").boolean("timeline")) json["timeline"] = timeline_json(record.result);
  json["environment"] = Json::parse(environment_json());
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tenon
