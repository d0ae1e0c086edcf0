// Folders, result.json, and the comparison table.
#include <tenon/cli/run_files.h>

#include <tenon/memory/purpose.h>
#include <tenon/runtime/environment.h>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <numeric>

namespace tenon::cli {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// Equal for runs whose losses are equal to the last bit.
std::string hash_of(const std::vector<double>& losses) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const double loss : losses) {
    const auto bits = std::bit_cast<std::uint64_t>(loss);
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ ((bits >> (8 * byte)) & 0xffU)) * 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

Json quantiles(std::vector<double> values) {
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {{"p50", at(0.5)},
          {"p90", at(0.9)},
          {"p99", at(0.99)},
          {"max", values.back()},
          {"mean", sum / static_cast<double>(values.size())}};
}

Json memory_json(const ExperimentResult& result) {
  const MemoryStats& stats = result.memory;
  const std::int64_t counted = result.steps - result.warmup_steps;
  Json memory;
  memory["peak_requested_bytes"] = stats.requested_bytes.peak;
  memory["peak_allocated_bytes"] = stats.allocated_bytes.peak;
  memory["peak_reserved_bytes"] = stats.reserved_bytes.peak;
  memory["allocations"] = stats.allocations.allocated;
  memory["device_allocations"] = stats.device_allocations;
  memory["device_frees"] = stats.device_frees;
  memory["device_maps"] = stats.device_maps;
  memory["device_unmaps"] = stats.device_unmaps;
  memory["device_synchronizations"] = stats.device_synchronizations;
  memory["device_calls_per_step"] =
      counted > 0 ? Json(static_cast<double>(result.device_calls_after_warmup) / static_cast<double>(counted))
                  : Json(nullptr);
  memory["warmup_steps"] = result.warmup_steps;
  memory["ooms"] = stats.ooms;
  memory["oom_recoveries"] = result.oom_recoveries;
  for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
    memory["peak_requested_bytes_by_purpose"][std::string(name_of(static_cast<Purpose>(purpose)))] =
        stats.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
  }
  return memory;
}

Json result_block(const ExperimentResult& result, const Options& report) {
  Json block;
  block["test_accuracy"] = result.epochs.empty() ? Json(nullptr) : Json(result.test_accuracy);
  block["final_loss"] = result.losses.empty() ? Json(nullptr) : Json(result.losses.back());
  block["losses_fnv1a64"] = result.losses.empty() ? Json(nullptr) : Json(hash_of(result.losses));
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
  if (report.boolean("losses")) block["losses"] = result.losses;
  return block;
}

template <class T>
std::optional<T> number(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<T>();
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
               {"peak_requested_bytes", report.peak_requested_bytes},
               {"reproduced", report.is_reproduced()},
               {"replayed", attempt_json(report.current)},
               {"others", Json::array()}};
  for (const replay::FitAttempt& attempt : report.others) json["others"].push_back(attempt_json(attempt));
  return json;
}

}  // namespace

fs::path make_output_folder(const fs::path& wanted, const std::string& name) {
  fs::path folder = wanted;
  if (folder.empty()) {
    std::string plain = name;
    for (char& c : plain) {
      const bool keep = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
      if (!keep) c = '-';
    }
    const std::string stem = fmt::format("{}-{:%Y%m%d-%H%M%S}", plain, fmt::localtime(std::time(nullptr)));
    folder = fs::path("tenon-out") / stem;
    for (int n = 2; fs::exists(folder); ++n) folder = fs::path("tenon-out") / fmt::format("{}-{}", stem, n);
  }
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem)
    throw ConfigError(
        fmt::format("cannot make the folder {}: {}; choose another with --out", folder.string(), problem.message()));
  return folder;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Error(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

std::string result_json(const Config& config, const RunRecord& record) {
  const ExperimentConfig experiment = config.experiment();
  Json json;
  json["schema_version"] = 1;
  json["name"] = experiment.name;
  json["status"] = record.status;
  json["error"] = record.error.empty() ? Json(nullptr) : Json(record.error);
  json["exit_code"] = record.exit_code;
  json["seconds"] = record.seconds;
  json["device"] = experiment.device.str();
  json["allocator"] = experiment.allocator.policy.name;
  json["allocator_options"] = experiment.allocator.options.spec();
  json["layers"] = Json::array();
  for (const LayerConfig& layer : experiment.allocator.layers) json["layers"].push_back(layer.name);
  json["result"] = result_block(record.result, experiment.section("report"));
  json["memory"] = memory_json(record.result);
  json["memory"]["leaked_bytes"] = record.leaked_bytes;
  if (record.estimate) json["memory_estimate"] = Json::parse(estimate_json(*record.estimate, &record.result.memory));
  if (!record.recorded.empty()) json["recorded"] = record.recorded;
  if (record.would_fit) json["out_of_memory"] = fit_json(*record.would_fit);
  for (const ExplainedSetting& setting : config.explain()) {
    json["settings"][setting.key] = {{"value", setting.text}, {"from", setting.winner.str()}};
  }
  if (experiment.section("report").boolean("timeline")) {
    json["timeline"] = Json::array();
    for (const MemorySample& sample : record.result.timeline) {
      json["timeline"].push_back({{"step", sample.step},
                                  {"requested_bytes", sample.requested_bytes},
                                  {"allocated_bytes", sample.allocated_bytes},
                                  {"reserved_bytes", sample.reserved_bytes},
                                  {"peak_allocated_bytes", sample.peak_allocated_bytes}});
    }
  }
  json["environment"] = Json::parse(environment_json());
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

CellSummary read_summary(const fs::path& path) {
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!file || json.is_discarded() || !json.is_object()) throw Error(fmt::format("{}: no result", path.string()));
  const auto block = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_object() ? *found : nlohmann::json::object();
  };
  const nlohmann::json result = block("result");
  const nlohmann::json memory = block("memory");
  CellSummary cell;
  cell.status = json.value("status", "failed");
  if (const auto error = json.find("error"); error != json.end() && error->is_string()) cell.error = *error;
  if (const auto hash = result.find("losses_fnv1a64"); hash != result.end() && hash->is_string())
    cell.losses_hash = *hash;
  cell.test_accuracy = number<double>(result, "test_accuracy");
  cell.final_loss = number<double>(result, "final_loss");
  if (const auto steps = result.find("step_ms"); steps != result.end() && steps->is_object())
    cell.step_ms = number<double>(*steps, "p50");
  cell.seconds = number<double>(json, "seconds");
  cell.parameters = number<std::int64_t>(result, "parameters");
  cell.steps = number<std::int64_t>(result, "steps");
  cell.device_calls_per_step = number<double>(memory, "device_calls_per_step");
  cell.peak_requested_bytes = number<std::int64_t>(memory, "peak_requested_bytes");
  cell.peak_allocated_bytes = number<std::int64_t>(memory, "peak_allocated_bytes");
  cell.peak_reserved_bytes = number<std::int64_t>(memory, "peak_reserved_bytes");
  const nlohmann::json purposes = memory.value("peak_requested_bytes_by_purpose", nlohmann::json::object());
  for (const auto& [purpose, bytes] : purposes.items()) cell.peak_bytes_by_purpose[purpose] = bytes;
  const nlohmann::json figures = result.value("figures", nlohmann::json::object());
  for (const auto& [name, value] : figures.items()) cell.figures[name] = value;
  return cell;
}

}  // namespace tenon::cli
