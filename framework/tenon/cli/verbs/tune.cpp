// `tenon tune`: the settings to paste, with the evidence.
#include <tenon/cli/one_trace.h>
#include <tenon/cli/progress_line.h>
#include <tenon/cli/verb.h>

#include <tenon/core/units.h>
#include <tenon/replay/advise/tune.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

namespace tenon::cli {

namespace {

using Json = nlohmann::ordered_json;

struct TuneVerbOptions {
  std::vector<std::string> traces;
  std::string capacity;
  std::string budget = "60s";
  unsigned jobs = 0;
  TableFormat format = TableFormat::kTable;
  bool quiet = false;
};

/// "60", "60s", "2m", "1h", "500ms".
double parse_seconds(const std::string& text) {
  static const std::map<std::string, double> kUnits = {{"", 1},     {"s", 1},    {"m", 60},
                                                       {"min", 60}, {"h", 3600}, {"ms", 0.001}};
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const auto unit = kUnits.find(text.substr(used));
  if (used == 0 || !(value > 0) || std::isinf(value) || unit == kUnits.end()) {
    throw ConfigError(fmt::format("--budget \"{}\" is no time; for example 500ms, 30s, 2m or 1h", text));
  }
  return value * unit->second;
}

std::string label_of(const replay::Candidate& candidate) {
  std::string label = candidate.label.empty() ? "(PyTorch's defaults)" : candidate.label;
  if (!candidate.is_pytorch) label = "tenon " + label;
  return label;
}

/// Whether the rows begin with less than a recording did.
bool starts_cold(const replay::TuneResult& result) {
  return std::ranges::any_of(result.trust,
                             [](const replay::Trust& trust) { return trust.reserved_at_start_bytes != 0; });
}

std::string remark_of(const replay::Candidate& candidate, const replay::TuneResult& result) {
  std::string remark;
  const auto add = [&](const char* word) { remark += (remark.empty() ? "" : ", ") + std::string(word); };
  if (candidate.is_recommended) add("recommended");
  if (candidate.is_baseline) {
    add(!result.is_baseline_recorded ? "baseline"
        : starts_cold(result)        ? "as recorded, but from an empty device"
                                     : "as recorded");
  }
  if (candidate.is_pareto) add("Pareto");
  if (!candidate.failure.empty()) add("failed");
  return remark;
}

/// Capacities are exact for people too: one that is rounded may be one that fails.
Table table_of(const replay::TuneResult& result, TableFormat format) {
  const bool for_people = format == TableFormat::kTable || format == TableFormat::kMarkdown;
  Table table({{"setting", "setting"},
               {"safe_from_bytes", "safe from"},
               {"peak_reserved_bytes", "peak reserved"},
               {"excess", "excess"},
               {"device_calls", "device calls"},
               {"ooms_at_capacity", "OOMs at capacity"},
               {"peak_at_capacity_bytes", "peak there"},
               {"remark", "remark"}});
  for (const replay::Candidate& candidate : result.finalists) {
    std::vector<Cell> cells(8);
    cells[0] = label_of(candidate);
    if (const auto safe = candidate.safe_from_bytes)
      cells[1] = for_people ? Cell(replay::format_capacity(*safe)) : Cell(Bytes{static_cast<std::int64_t>(*safe)});
    cells[2] = Bytes{static_cast<std::int64_t>(candidate.peak_reserved_bytes)};
    cells[3] = Ratio{candidate.relative_peak - 1};
    cells[4] = static_cast<std::int64_t>(candidate.device_calls);
    if (candidate.ooms_at_capacity) {
      cells[5] = static_cast<std::int64_t>(*candidate.ooms_at_capacity);
      cells[6] = Bytes{static_cast<std::int64_t>(candidate.peak_at_capacity)};
    }
    if (const std::string remark = remark_of(candidate, result); !remark.empty()) cells[7] = remark;
    table.add_row(std::move(cells));
  }
  return table;
}

/// "fails from 14950MiB, runs from 15361MiB, fails from 17615MiB, …": the stretches of one policy's curve.
std::string curve_text(const replay::Candidate& candidate, std::uint64_t need_bytes) {
  std::string text;
  if (candidate.is_sampled) {
    text = fmt::format("at {} capacities that were tried (it depends on the size of the device itself)",
                       candidate.sensitivity.size());
  } else if (candidate.examined_from_bytes > need_bytes) {
    text = fmt::format("not examined below {}", replay::format_capacity(candidate.examined_from_bytes));
  }
  const auto& points = candidate.sensitivity;
  for (std::size_t i = 0; i < points.size();) {
    std::size_t end = i;
    while (end < points.size() && (points[end].ooms == 0) == (points[i].ooms == 0)) ++end;
    const std::string from = replay::format_capacity(points[i].capacity_bytes);
    const char* verb = points[i].ooms == 0 ? "runs" : "fails";
    text += fmt::format("{}{} from {}", text.empty() ? "" : ", ", verb, from);
    i = end;
  }
  return text;
}

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
  json["sentence"] = refusal.empty() ? fidelity.sentence() : refusal;
  json["reserved_at_start_bytes"] = trust.reserved_at_start_bytes;
  json["caveats"] = trust.caveats;
  if (!refusal.empty()) json["caveats"].push_back(refusal);
  return json;
}

std::string json_of(const replay::TuneResult& result, const std::vector<replay::Trace>& traces,
                    const TuneVerbOptions& options) {
  Json json;
  json["schema_version"] = 1;
  json["environment"] = Json::parse(environment_json());
  json["traces"] = options.traces;
  json["peak_requested_bytes"] = result.peak_requested_bytes;
  json["refused"] = nullptr;
  json["evaluated"] = result.evaluated;
  json["space_size"] = result.space_size;
  json["exhaustive"] = result.is_exhaustive;
  json["recorded_conf"] = result.recorded_conf;
  json["recorded_confs"] = result.recorded_confs;
  json["dropped_settings"] = result.dropped_settings;
  json["baseline_is_recorded"] = result.is_baseline_recorded;
  json["seconds"] = result.seconds;
  json["rows"] = Json::array();
  for (const replay::Candidate& candidate : result.finalists) {
    Json row;
    row["setting"] = candidate.label;
    row["kind"] = candidate.is_pytorch ? "pytorch" : "tenon";
    row["peak_reserved_bytes"] = candidate.peak_reserved_bytes;
    row["excess"] = candidate.relative_peak - 1;
    row["device_calls"] = candidate.device_calls;
    row["safe_from_bytes"] = candidate.safe_from_bytes ? Json(*candidate.safe_from_bytes) : Json(nullptr);
    row["safe_from_is_smallest"] = candidate.is_smallest;
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
    json["rows"].push_back(std::move(row));
  }
  const auto best = std::ranges::find_if(result.finalists,
                                         [](const replay::Candidate& candidate) { return candidate.is_recommended; });
  Json& recommendation = json["recommendation"];
  recommendation = nullptr;
  if (best != result.finalists.end()) {
    recommendation = Json::object();
    recommendation["PYTORCH_ALLOC_CONF"] = result.recommended_conf;
    recommendation["PYTORCH_CUDA_ALLOC_CONF"] = result.recommended_conf;
    recommendation["toml"] = result.recommended_toml;
    recommendation["safe_from_bytes"] = best->safe_from_bytes ? Json(*best->safe_from_bytes) : Json(nullptr);
    recommendation["peak_reserved_bytes"] = best->peak_reserved_bytes;
  }
  json["fidelity"] = Json::array();
  for (std::size_t i = 0; i < traces.size(); ++i) json["fidelity"].push_back(json_of(result.trust[i], traces[i].name));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// What a program that reads the JSON gets when nothing is recommended from a file.
std::string refusal_json(const std::string& trace, const replay::Trust& trust, const TuneVerbOptions& options) {
  Json json;
  json["schema_version"] = 1;
  json["environment"] = Json::parse(environment_json());
  json["traces"] = options.traces;
  json["refused"] = {{"trace", trace}, {"reason", trust.refusal}};
  json["rows"] = Json::array();
  json["recommendation"] = nullptr;
  json["fidelity"] = Json::array({json_of(trust, trace)});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// What becomes of the settings that the recording had, one line; empty when they stay as they are.
std::string about_recorded(const replay::TuneResult& result) {
  if (std::ranges::adjacent_find(result.recorded_confs, std::not_equal_to<>()) != result.recorded_confs.end()) {
    return fmt::format(
        "The files were recorded under different settings (\"{}\"): the baseline is PyTorch's defaults, and nothing of "
        "them is kept.\n",
        fmt::join(result.recorded_confs, "\", \""));
  }
  if (result.recorded_conf.empty() || result.recommended_conf == result.recorded_conf) return {};
  const std::vector<std::string> now = replay::settings_of(result.recommended_conf);
  std::vector<std::string> kept, replaced;
  for (const std::string& setting : replay::settings_of(result.recorded_conf)) {
    if (std::ranges::find(result.dropped_settings, setting) != result.dropped_settings.end()) continue;
    (std::ranges::find(now, setting) != now.end() ? kept : replaced).push_back(setting);
  }
  std::string text = fmt::format("Set in the recording: \"{}\"", result.recorded_conf);
  if (!kept.empty()) text += fmt::format("; kept: {}", fmt::join(kept, ", "));
  if (!replaced.empty()) text += fmt::format("; searched anew, not to be set: {}", fmt::join(replaced, ", "));
  if (!result.dropped_settings.empty()) {
    text += fmt::format("; left out, since PyTorch's native allocator does not take it: {}",
                        fmt::join(result.dropped_settings, ", "));
  }
  return text + (result.recommended_conf.empty() ? ".\n" : ". The whole line:\n");
}

/// When no setting of PyTorch's runs: one of Tenon's allocators may, at a price.
std::string without_recommendation(const replay::TuneResult& result, const std::string& capacity) {
  const std::uint64_t room = capacity.empty() ? ~std::uint64_t{0} : parse_size(capacity);
  const auto own = std::ranges::find_if(result.finalists, [&](const replay::Candidate& candidate) {
    return !candidate.is_pytorch && candidate.failure.empty() && candidate.safe_from_bytes &&
           *candidate.safe_from_bytes <= room;
  });
  const std::string where = capacity.empty() ? "any capacity that was tried" : capacity;
  std::string limit;
  for (const std::string& setting : replay::settings_of(result.recorded_conf)) {
    if (setting.starts_with("per_process_memory_fraction:"))
      limit = fmt::format("All were tried with {}, which was set in the recording.\n", setting);
  }
  if (own == result.finalists.end()) {
    return fmt::format("\nNothing that was tried runs safely in {}: the peak of live memory alone is {}.\n", where,
                       format_bytes(result.peak_requested_bytes)) +
           limit;
  }
  return fmt::format(
      "\nNo setting of PyTorch that was tried runs safely in {}. Of Tenon's own allocators, {} does, from {} on, with "
      "{} device calls.\n{}",
      where, own->label, replay::format_capacity(*own->safe_from_bytes), own->device_calls, limit);
}

std::string advice(const replay::TuneResult& result, const std::vector<replay::Trace>& traces,
                   const TuneVerbOptions& options) {
  std::string out;
  const auto best = std::ranges::find_if(result.finalists,
                                         [](const replay::Candidate& candidate) { return candidate.is_recommended; });
  const auto base =
      std::ranges::find_if(result.finalists, [](const replay::Candidate& candidate) { return candidate.is_baseline; });
  if (best == result.finalists.end()) {
    out += without_recommendation(result, options.capacity);
  } else {
    if (best->is_baseline) {
      out += result.recommended_conf.empty() ? "\nNo setting is better than PyTorch's defaults: set none.\n"
                                             : "\nNo setting is better than what is set already:\n";
    } else {
      out += fmt::format(
          "\nRecommended: peak reserved {} instead of {} ({:.1f} % beyond {}).\n",
          format_bytes(best->peak_reserved_bytes),
          format_bytes(base == result.finalists.end() ? 0 : base->peak_reserved_bytes), 100 * (best->relative_peak - 1),
          traces.size() == 1 ? fmt::format("the {} that live at the peak", format_bytes(result.peak_requested_bytes))
                             : fmt::format("what lives at the peaks, on the mean over the {} traces", traces.size()));
    }
    out += about_recorded(result);
    if (!result.recorded_conf.empty() && result.recommended_conf.empty())
      out += "  unset PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF\n";
    if (!result.recommended_conf.empty()) {
      out += fmt::format(
          "  export PYTORCH_ALLOC_CONF=\"{0}\"\n  export PYTORCH_CUDA_ALLOC_CONF=\"{0}\"   # before PyTorch 2.9\n",
          result.recommended_conf);
    }
    if (best->safe_from_bytes) {
      out += fmt::format("Smallest safe capacity: {} ({} bytes); every larger one {}{}{}.\n",
                         replay::format_capacity(*best->safe_from_bytes), *best->safe_from_bytes,
                         best->is_sampled ? "that was tried runs too" : "runs too",
                         traces.size() == 1 ? "" : ", with every trace",
                         best->is_sampled || best->is_smallest ? "" : "; smaller ones were not examined in that time");
    }
    out += "For Tenon:\n";
    std::string line;
    for (const char c : result.recommended_toml) {
      if (c == '\n') {
        out += "  " + line + "\n";
        line.clear();
      } else {
        line.push_back(c);
      }
    }
  }
  out += "Sensitivity to capacity:\n";
  for (const replay::Candidate& candidate : result.finalists) {
    if (!candidate.sensitivity.empty())
      out += fmt::format("  {}: {}\n", label_of(candidate), curve_text(candidate, result.peak_requested_bytes));
  }
  for (std::size_t i = 0; i < traces.size(); ++i) {
    out += fmt::format("{}: {}.\n", traces[i].name, result.trust[i].fidelity.sentence());
    for (const std::string& caveat : result.trust[i].caveats)
      out += fmt::format("{}: with care: {}.\n", traces[i].name, caveat);
  }
  out += fmt::format("Tried {} of {} combinations of PyTorch's settings{} in {:.1f} s.\n", result.evaluated,
                     result.space_size, result.is_exhaustive ? ", the whole grid," : "", result.seconds);
  return out;
}

ExitCode tune_verb(const TuneVerbOptions& options) {
  replay::TuneOptions tuning;
  if (!options.capacity.empty()) tuning.capacity_bytes = parse_size(options.capacity);
  tuning.budget_seconds = parse_seconds(options.budget);
  tuning.jobs = options.jobs;
  const std::vector<replay::Trace> traces = all_traces(options.traces);
  load_all_plugins();
  for (const replay::Trace& trace : traces) {
    if (!options.quiet) {
      for (const std::string& note : trace.notes) say(fmt::format("{}: {}", trace.name, note));
    }
    tuning.trust.push_back(replay::judge(trace));
    if (const std::string& why = tuning.trust.back().refusal; !why.empty()) {
      if (options.format == TableFormat::kJson) print(refusal_json(trace.name, tuning.trust.back(), options));
      throw Error(why);
    }
  }
  for (const std::string& name : allocator_names()) {
    StackConfig allocator = allocator_from_spec(name);
    // Those that PyTorch has are searched by its own settings.
    if (!allocator.policy.traits.pytorch_conf) tuning.allocators.emplace_back(name, std::move(allocator));
  }
  replay::TuneResult result;
  {
    ProgressLine line("tuning", options.quiet);
    tuning.progress = [&](std::size_t done, std::size_t total) { line.update(done, total); };
    result = replay::tune(traces, tuning);
  }
  if (options.format == TableFormat::kJson) {
    print(json_of(result, traces, options));
  } else {
    print(render(table_of(result, options.format), options.format, environment_json()));
    if (options.format == TableFormat::kTable) print(advice(result, traces, options));
    if (options.format == TableFormat::kMarkdown) print("\n```text" + advice(result, traces, options) + "```\n");
  }
  const bool has_answer = std::ranges::any_of(
      result.finalists, [](const replay::Candidate& candidate) { return candidate.is_recommended; });
  return has_answer ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace

void add_tune(CLI::App& program, Outcome& outcome) {
  auto options = std::make_shared<TuneVerbOptions>();
  CLI::App* verb =
      program.add_subcommand("tune", "search allocator settings for traces and recommend the line to paste");
  verb->add_option("traces", options->traces, "memory histories, as for replay")->required()->type_name("TRACE");
  add_capacity_option(*verb, options->capacity, "the device that it must run on");
  verb->add_option("--budget", options->budget, "time to search: 30s, 2m")->type_name("TIME")->capture_default_str();
  verb->add_option("--jobs,-j", options->jobs, "replays at a time; as many as cores without")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  add_format_option(*verb, options->format);
  add_quiet_option(*verb, options->quiet);
  verb->footer(example("tenon tune memory.pickle --capacity 24GiB"));
  verb->callback([options, &outcome] { outcome.exit_code = tune_verb(*options); });
}

}  // namespace tenon::cli
