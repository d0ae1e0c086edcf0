// A run's figures in one row: from the run itself, or from the result.json that another process left.
// Declared in run_report.h.
#include <tenon/report/run/run_figures.h>
#include <tenon/report/run/run_report.h>

#include <tenon/core/error.h>
#include <tenon/memory/purpose.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>

namespace tenon {

namespace {

template <class T>
std::optional<T> number(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<T>();
}

/// A line of "disqualified": of an allocator behind a layer it begins with its title.
RunFault fault_of(const std::string& line) {
  constexpr std::string_view kBehind = " behind the layer '";
  const std::size_t behind = line.find(kBehind);
  const std::size_t quote = behind == std::string::npos ? behind : line.find('\'', behind + kBehind.size());
  if (quote == std::string::npos || quote + 2 > line.size()) return {.allocator = {}, .what = line};
  return {.allocator = line.substr(0, quote + 1), .what = line.substr(quote + 2)};
}

/// JSON has no other numbers.
std::optional<double> finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

/// What ended before its first request has no peak.
void forget_peaks(RunSummary& run) {
  run.peak_requested_bytes = run.peak_allocated_bytes = run.peak_reserved_bytes = std::nullopt;
  run.peak_bytes_by_purpose.clear();
  run.peak_bytes_by_element.clear();
}

}  // namespace

std::string losses_hash(const std::vector<double>& losses) {
  if (std::ranges::all_of(losses, [](double loss) { return std::isnan(loss); })) return {};
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const double loss : losses) {
    const auto bits = std::bit_cast<std::uint64_t>(loss);
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ ((bits >> (8 * byte)) & 0xffU)) * 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

RunSummary summary_of(const RunRecord& record) {
  const ExperimentResult& result = record.result;
  const MemoryStats& stats = result.memory;
  RunSummary run;
  run.status = record.status;
  run.error = record.error;
  run.losses_hash = losses_hash(result.losses);
  if (!result.epochs.empty()) run.test_accuracy = finite(result.test_accuracy);
  if (!result.losses.empty()) run.final_loss = finite(result.losses.back());
  if (!result.step_ms.empty()) run.step_ms = finite(quantile(result.step_ms, 0.5));
  run.seconds = finite(record.seconds);
  run.parameters = result.parameters;
  run.steps = result.steps;
  run.device_calls_per_step = device_calls_per_step(result);
  run.peak_requested_bytes = stats.requested_bytes.peak;
  run.peak_allocated_bytes = stats.allocated_bytes.peak;
  run.peak_reserved_bytes = stats.reserved_bytes.peak;
  run.peak_in_steps_bytes = peak_in_steps(result);
  for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
    run.peak_bytes_by_purpose[std::string(name_of(static_cast<Purpose>(purpose)))] =
        stats.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
  }
  run.peak_bytes_by_element = element_peaks(stats);
  if (result.peak.allocated_bytes > 0) {
    run.peak_phase = phase_name(result.peak.phase);
    for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
      run.bytes_in_peak_phase[std::string(name_of(static_cast<Purpose>(purpose)))] =
          result.peak.requested_by_purpose[static_cast<std::size_t>(purpose)];
    }
  }
  if (record.would_fit) run.first_oom_event = failed_event(*record.would_fit);
  run.is_checkpointed = record.is_checkpointed;
  run.cells_at_a_time = record.cells_at_a_time;
  run.faults = record.faults;
  if (record.estimate) run.estimate_error = estimate_error(*record.estimate, stats);
  for (const auto& [name, value] : result.figures) {
    if (!std::isfinite(value)) continue;
    run.figures[name] = name.ends_with("_bytes") ? std::trunc(value) : value;
  }
  if (stats.allocations.allocated == 0) forget_peaks(run);
  return run;
}

RunSummary read_summary(const std::filesystem::path& path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!file || json.is_discarded() || !json.is_object()) throw Error(fmt::format("{}: no result", path.string()));
  const auto block = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_object() ? *found : nlohmann::json::object();
  };
  const nlohmann::json result = block("result");
  const nlohmann::json memory = block("memory");
  RunSummary run;
  const auto status = json.find("status");
  if (status != json.end() && status->is_string())
    run.status = parse_run_status(status->get<std::string>()).value_or(RunStatus::kFailed);
  else
    run.status = RunStatus::kFailed;
  if (const auto error = json.find("error"); error != json.end() && error->is_string()) run.error = *error;
  if (const auto hash = result.find("losses_fnv1a64"); hash != result.end() && hash->is_string())
    run.losses_hash = *hash;
  run.test_accuracy = number<double>(result, "test_accuracy");
  run.final_loss = number<double>(result, "final_loss");
  if (const auto steps = result.find("step_ms"); steps != result.end() && steps->is_object())
    run.step_ms = number<double>(*steps, "p50");
  run.seconds = number<double>(json, "seconds");
  run.parameters = number<std::int64_t>(result, "parameters");
  run.steps = number<std::int64_t>(result, "steps");
  run.device_calls_per_step = number<double>(memory, "device_calls_per_step");
  run.peak_requested_bytes = number<std::int64_t>(memory, "peak_requested_bytes");
  run.peak_allocated_bytes = number<std::int64_t>(memory, "peak_allocated_bytes");
  run.peak_reserved_bytes = number<std::int64_t>(memory, "peak_reserved_bytes");
  run.peak_in_steps_bytes = number<std::int64_t>(memory, "peak_allocated_in_steps_bytes");
  const nlohmann::json purposes = memory.value("peak_requested_bytes_by_purpose", nlohmann::json::object());
  for (const auto& [purpose, bytes] : purposes.items()) run.peak_bytes_by_purpose[purpose] = bytes;
  run.peak_bytes_by_element = memory.value("peak_requested_bytes_by_element", ElementPeaks());
  if (const auto phase = memory.find("peak_phase"); phase != memory.end() && phase->is_string())
    run.peak_phase = *phase;
  const nlohmann::json in_phase = memory.value("requested_bytes_by_purpose_in_peak_phase", nlohmann::json::object());
  for (const auto& [purpose, bytes] : in_phase.items()) run.bytes_in_peak_phase[purpose] = bytes;
  if (number<std::int64_t>(memory, "allocations") == 0) forget_peaks(run);
  run.first_oom_event = number<std::uint64_t>(block("out_of_memory"), "failed_event");
  run.cells_at_a_time = number<std::int64_t>(json, "cells_at_a_time").value_or(1);
  for (const auto& line : json.value("disqualified", nlohmann::json::array()))
    if (line.is_string()) run.faults.push_back(fault_of(line));
  const nlohmann::json errors = block("memory_estimate").value("error", nlohmann::json::object());
  run.estimate_error = {.requested = number<double>(errors, "peak_requested"),
                        .reserved = number<double>(errors, "peak_reserved")};
  const nlohmann::json settings = block("settings");
  if (const auto found = settings.find("train.checkpoint"); found != settings.end() && found->is_object())
    run.is_checkpointed = found->value("value", "") == "true";
  const nlohmann::json figures = result.value("figures", nlohmann::json::object());
  for (const auto& [name, value] : figures.items()) run.figures[name] = value;
  return run;
}

}  // namespace tenon
