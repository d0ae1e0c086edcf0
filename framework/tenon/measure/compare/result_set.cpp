// JSON of runs, sweeps, replays and benches -> cases.
#include "result_allocator.inl"

#include <tenon/measure/bench/workload.h>
#include <tenon/measure/compare/figure.h>
#include <tenon/measure/compare/result_set.h>

#include <tenon/core/error.h>
#include <tenon/core/files/file_text.h>
#include <tenon/core/spec_names.h>
#include <tenon/core/units.h>
#include <tenon/memory/stack/shown_figures.h>
#include <tenon/replay/results/result_document.h>
#include <tenon/runtime/result_files.h>
#include <tenon/runtime/run_status.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace tenon::measure {

namespace {

std::vector<double> rounds_of(const Json& list) {
  std::vector<double> rounds;
  for (const Json& value : list.is_array() ? list : Json::array()) {
    if (value.is_number()) rounds.push_back(value.get<double>());
  }
  return rounds;
}
void add(ResultCase& found, const std::string& key, const Json& value, std::vector<double> rounds = {}) {
  if (value.is_number()) found.figures[key] = {value.get<double>(), {}, std::move(rounds)};
}

void add_field(ResultCase& found, const std::string& key, const std::string& value) {
  found.fields.emplace_back(key, value);
  if (!value.empty()) found.name += (found.name.empty() ? "" : ", ") + value;
}

/// "timeline" of a run or of a replay's row: a sample after each step, or event.
void add_curves(ResultCase& found, const Json& object, const char* axis) {
  ResultCurve requested{"requested", {}}, reserved{"reserved", {}};
  for (const Json& sample : member(object, "timeline")) {
    const Json& place = member(sample, axis);
    if (!place.is_number()) continue;
    const auto bytes = [&](const char* key) {
      return member(sample, key).is_number() ? member(sample, key).get<double>() : 0;
    };
    requested.points.emplace_back(place.get<double>(), bytes("requested_bytes"));
    reserved.points.emplace_back(place.get<double>(), bytes("reserved_bytes"));
  }
  if (!requested.points.empty()) found.curves = {std::move(requested), std::move(reserved)};
}

/// The median over the steps of a run.
void add_step_times(ResultCase& found, const Json& result) {
  add(found, "step_ms", member(member(result, "step_ms"), "p50"));
}

/// Every known figure that stands in a row itself, and percentiles one level down.
void add_known(ResultCase& found, const Json& row) {
  for (const FigureInfo& info : known_figures()) {
    const std::string key(info.key);
    const std::size_t dot = key.find('.');
    const Json& value =
        dot == std::string::npos ? member(row, key) : member(member(row, key.substr(0, dot)), key.substr(dot + 1));
    add(found, key, value);
  }
}

/// The field, as its title with the options.
void add_allocator(ResultCase& found, const char* field, const RowAllocator& from, const std::string& title,
                   std::string options) {
  add_field(found, field, spec_with(title, options) + from.number);
  found.allocator = {.field = field, .name = from.name, .options = std::move(options), .file = from.file()};
}

/// Of verbs that have no word for it.
void note_failure(ResultCase& found, const Json& row) {
  found.failure = text_of(member(row, "failure"));
  if (!found.failure.empty()) found.mark = "failed";
}

void note_oom_event(ResultCase& found, const Json& event) {
  if (!event.is_number()) return;
  found.ran_out = fmt::format("OOM at event {}", event.get<std::uint64_t>());
  found.is_oom_event_known = true;
}

ResultCase replay_case(const Json& row, const RowAllocator& allocator, const std::string& title) {
  ResultCase found{.kind = ResultKind::kReplay};
  add_field(found, "trace", text_of(member(row, "trace")));
  std::string options;
  for (const auto& [key, value] : object(row, "options").items())
    options += (options.empty() ? "" : ",") + key + "=" + text_of(value);
  add_allocator(found, kAllocatorField, allocator, title, std::move(options));
  if (const Json& capacity = member(row, "capacity_bytes"); capacity.is_number())
    add_field(found, "capacity", format_size_exact(capacity.get<std::uint64_t>()));
  add_known(found, row);
  add_curves(found, row, "event");
  for (const char* timed : {"seconds", "allocate_ns.p50", "allocate_ns.p99", "free_ns.p50", "free_ns.p99"}) {
    const auto figure = found.figures.find(timed);
    if (figure != found.figures.end() && figure->second.value == 0) found.figures.erase(figure);  // not measured
  }
  if (const auto seconds = found.figures.find("seconds"); seconds != found.figures.end())
    seconds->second.rounds = rounds_of(member(row, "pass_seconds"));
  note_failure(found, row);
  if (const auto ooms = found.figures.find("ooms"); ooms != found.figures.end() && ooms->second.value > 0)
    found.ran_out = "OOM";
  note_oom_event(found, member(row, "first_oom_event"));
  return found;
}

ResultCase bench_case(const Json& row, const RowAllocator& allocator, const std::string& title) {
  ResultCase found{.kind = ResultKind::kBench};
  add_field(found, "workload", text_of(member(row, "workload")));
  add_allocator(found, kAllocatorField, allocator, title, allocator.options());
  add(found, "ns_per_pair", member(row, "ns_per_pair"), rounds_of(member(row, "round_ns")));
  note_failure(found, row);
  return found;
}

/// Columns of a sweep's rows that are not settings.
bool is_result_column(const std::string& key) {
  static const std::set<std::string> kOthers = {"status", "error", "losses_fnv1a64", "peak_phase", "cells_at_a_time"};
  const bool is_peak = key.starts_with("peak_") && key.ends_with("_bytes");  // of some purpose, in some elements
  return find_figure(key) != nullptr || kOthers.contains(key) || is_peak || key.starts_with("expected_");
}

void note_resumption(ResultCase& found, const Json& run) {
  const Json& earlier = member(run, "earlier_seconds");
  if (earlier.is_number()) found.is_resumed = earlier.get<double>() > 0;
}

void note_status(ResultCase& found, const Json& object) {
  const std::string word = text_of(member(object, "status"));
  if (const Json& cells = member(object, "cells_at_a_time"); cells.is_number_integer())
    found.cells_at_a_time = cells.get<std::int64_t>();
  note_resumption(found, object);
  if (word.empty()) return;
  const RunStatus status = parse_run_status(word).value_or(RunStatus::kFailed);
  if (status == RunStatus::kOutOfMemory) found.ran_out = "OOM";
  if (status == RunStatus::kOutOfMemory || status == RunStatus::kDone) return;
  const std::string error = text_of(member(object, "error"));
  found.mark = word;
  // "allocator 'x' is disqualified: …" says it already.
  found.failure = error.empty() ? word : error.find(word) != std::string::npos ? error : word + ": " + error;
}

ResultCase sweep_case(const Json& row, const RowAllocator& allocator, const std::string& title) {
  ResultCase found{.kind = ResultKind::kSweep};
  for (const auto& [key, value] : row.items()) {
    if (key == kSweptAllocator) {
      add_allocator(found, kSweptAllocator, allocator, title, allocator.options());
    } else if (!is_result_column(key)) {
      add_field(found, key, text_of(value));
    }
  }
  add_known(found, row);
  found.losses_hash = text_of(member(row, "losses_fnv1a64"));
  note_status(found, row);
  return found;
}

ResultCase run_case(const Json& json) {
  ResultCase found;
  const Json& result = member(json, "result");
  const Json& memory = member(json, "memory");
  add_known(found, result);
  add_known(found, memory);
  add_step_times(found, result);
  add(found, "seconds", member(json, "seconds"));
  for (const auto& [purpose, bytes] : object(memory, "peak_requested_bytes_by_purpose").items())
    add(found, "peak_" + purpose + "_bytes", bytes);
  const auto requested = found.figures.find("peak_requested_bytes"),
             reserved = found.figures.find("peak_reserved_bytes");
  if (requested != found.figures.end() && reserved != found.figures.end()) {
    if (const auto excess = excess_of(reserved->second.value, requested->second.value))
      found.figures["excess"] = {*excess, {}};
  }
  found.losses_hash = text_of(member(result, "losses_fnv1a64"));
  if (const Json& losses = member(result, "losses"); losses.is_array())
    for (const Json& loss : losses) found.losses.push_back(loss.is_number() ? loss.get<double>() : std::nan(""));
  if (const Json& step = member(member(result, "figures"), "resumed_at_step"); step.is_number() && step > 0)
    found.first_step = static_cast<std::size_t>(step.get<double>());
  note_status(found, json);
  if (!found.ran_out.empty()) note_oom_event(found, member(member(json, "out_of_memory"), "failed_event"));
  add_curves(found, json, "step");
  found.name = "run";
  return found;
}

std::map<std::string, std::string> settings_of(const Json& json) {
  std::map<std::string, std::string> settings;
  for (const auto& [key, setting] : object(json, "settings").items()) settings[key] = text_of(member(setting, "value"));
  return settings;
}

void read_run(ResultSet& set, const Json& json) {
  set.kind = ResultKind::kRun;
  set.cases.push_back(run_case(json));
  set.settings = settings_of(json);
}

/// By what its rows have; empty where they are of no verb that is compared.
std::optional<ResultKind> kind_of(const Json& json, const Json& row) {
  if (text_of(member(json, "kind")) == "bench") return ResultKind::kBench;
  if (row.contains("trace") && row.contains("allocator") && row.contains("peak_reserved_bytes"))
    return ResultKind::kReplay;
  if (row.contains("status") && row.contains("peak_reserved_bytes")) return ResultKind::kSweep;
  return std::nullopt;
}

}  // namespace

std::string kind_name(ResultKind kind) {
  switch (kind) {
    case ResultKind::kRun:
      return "a run";
    case ResultKind::kSweep:
      return "a sweep";
    case ResultKind::kReplay:
      return "a replay";
    case ResultKind::kBench:
      break;
  }
  return "a bench";
}

ResultSet parse_result(const std::string& text, const std::string& path) {
  const auto fail = [&](const std::string& why) {
    throw ConfigError(
        fmt::format("{}: {}; compared are result.json of `tenon run`, and what `tenon replay` and `tenon bench` "
                    "print with --format json",
                    path, why));
  };
  const Json json = replay::parse_result_document<Json>(text, path, fail);
  ResultSet set;
  set.path = path;
  for (const char* key : {"host", "cpu", "cores", "compiler", "build_type", "tenon_version"})
    set.environment[key] = text_of(member(member(json, "environment"), key));
  for (const Json& warning : member(member(json, "host"), "warnings")) set.noise.push_back(text_of(warning));
  if (json.contains("result") && json.contains("memory")) {
    read_run(set, json);
    return set;
  }
  if (!json.contains("rows")) fail("it has neither \"rows\" nor a run's \"result\"");
  replay::check_rows(json, fail);
  const Json& rows = member(json, "rows");
  if (rows.empty()) fail("it has no rows");
  const std::optional<ResultKind> kind = kind_of(json, rows.front());
  if (!kind) fail("its rows are those of another verb");
  set.kind = *kind;
  if (*kind != ResultKind::kSweep) set.plugins = builds_of(plugins_of(*kind, json));
  std::vector<RowAllocator> allocators;
  for (const Json& row : rows) allocators.push_back(allocator_of(*kind, json, row));
  const std::vector<std::string> titles = titles_of(allocators);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    if (*kind == ResultKind::kBench && text_of(member(row, "allocator")) == kHarness) continue;
    set.cases.push_back(*kind == ResultKind::kReplay  ? replay_case(row, allocators[i], titles[i])
                        : *kind == ResultKind::kBench ? bench_case(row, allocators[i], titles[i])
                                                      : sweep_case(row, allocators[i], titles[i]));
  }
  return set;
}

namespace {

namespace fs = std::filesystem;

/// What result.json of a sweep leaves out, from folders "001-…" beside it: step times and timelines of its cells, and
/// the settings that all of them share. A cell that left nothing, or something else, has none.
void add_cells(ResultSet& sweep, const fs::path& folder) {
  std::error_code absent;
  bool is_first = true;
  for (const fs::directory_entry& cell : fs::directory_iterator(folder, absent)) {
    const std::size_t number = std::strtoul(cell.path().filename().c_str(), nullptr, 10);
    const Json json = Json::parse(text_of_file(cell.path() / kResultFile), nullptr, false);
    if (number == 0 || number > sweep.cases.size() || !json.is_object()) continue;
    ResultCase& found = sweep.cases[number - 1];
    add_curves(found, json, "step");
    note_resumption(found, json);
    if (found.figures.contains("step_ms")) add_step_times(found, member(json, "result"));
    if (!found.ran_out.empty()) note_oom_event(found, member(member(json, "out_of_memory"), "failed_event"));
    const std::map<std::string, std::string> settings = settings_of(json);
    if (std::exchange(is_first, false)) sweep.settings = settings;
    std::erase_if(sweep.settings, [&](const auto& one) {
      const auto its = settings.find(one.first);
      return its == settings.end() || its->second != one.second;
    });
  }
}

}  // namespace

std::string ResultCase::field(std::string_view key) const {
  const auto found = std::ranges::find(fields, key, [](const auto& one) -> std::string_view { return one.first; });
  return found == fields.end() ? std::string() : found->second;
}

ResultSet read_result(const std::string& path) {
  if (path == "-") return parse_result(std::string(std::istreambuf_iterator<char>(std::cin), {}), "standard input");
  std::error_code absent;
  fs::path file = path;
  if (fs::is_directory(file, absent)) {
    file /= kResultFile;
    if (!fs::exists(file, absent)) throw ConfigError(fmt::format("{}: the folder holds no {}", path, kResultFile));
  }
  if (!std::ifstream(file)) throw ConfigError(fmt::format("{}: cannot be opened", path));
  ResultSet set = parse_result(text_of_file(file), file.string());
  set.path = path;
  if (set.kind == ResultKind::kRun || set.kind == ResultKind::kSweep) {  // run.json says what it was made with
    const Json manifest = Json::parse(text_of_file(file.parent_path() / kManifestFile), nullptr, false);
    set.plugins = builds_of(member(manifest, "plugins"));
  }
  if (set.kind == ResultKind::kSweep) add_cells(set, file.parent_path() / "cells");
  return set;
}

}  // namespace tenon::measure
