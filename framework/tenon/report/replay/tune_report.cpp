// The result of a search for people: the table and the advice under it.
#include <tenon/core/units.h>
#include <tenon/report/replay/export_lines.h>
#include <tenon/report/replay/own_advice.h>
#include <tenon/report/replay/tune_report.h>
#include <tenon/runtime/conf_policy.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace tenon {

namespace {

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
  if (candidate.is_planned) add("from a plan of this history");
  if (!candidate.failure.empty()) add("failed");
  return remark;
}

/// For people: every capacity above a safe one is safe, and one that is rounded down may fail.
std::uint64_t whole_mebibytes(std::uint64_t bytes) { return (bytes + MiB - 1) / MiB; }

Table tune_table(const replay::TuneResult& result, TableFormat format) {
  const bool for_people = format == TableFormat::kTable || format == TableFormat::kMarkdown;
  Table table({{"setting", "setting"},
               {"safe_from_bytes", for_people ? "safe from MiB" : "safe from", true, 4},
               {"peak_reserved_bytes", "peak reserved", true, 3},
               {"excess", "excess", true, 1},
               {"saved_bytes", "saves", true, 2},
               {"saved_fraction", "saves", false},
               {"device_calls", "device calls"},
               {"ooms_at_capacity", "OOMs at capacity", true, 2},
               {"peak_at_capacity_bytes", "peak there"},
               {"remark", "remark", true, 3}});
  for (const replay::Candidate& candidate : result.finalists) {
    std::vector<TableCell> cells(10);
    cells[0] = label_of(candidate);
    if (const auto safe = candidate.safe_from_bytes)
      cells[1] = for_people ? TableCell(static_cast<std::int64_t>(whole_mebibytes(*safe)))
                            : TableCell(Bytes{static_cast<std::int64_t>(*safe)});
    cells[2] = Bytes{static_cast<std::int64_t>(candidate.peak_reserved_bytes)};
    cells[3] = Ratio{candidate.relative_peak - 1};
    if (const auto& saving = candidate.saving) {
      cells[4] = for_people ? TableCell(saving_text(saving->bytes, saving->fraction)) : TableCell(Bytes{saving->bytes});
      cells[5] = Ratio{saving->fraction};
    }
    cells[6] = static_cast<std::int64_t>(candidate.device_calls);
    if (candidate.ooms_at_capacity) {
      cells[7] = static_cast<std::int64_t>(*candidate.ooms_at_capacity);
      cells[8] = Bytes{static_cast<std::int64_t>(candidate.peak_at_capacity)};
      // What was refused takes no memory: the peak would flatter.
      if (for_people && candidate.ooms_at_capacity != 0)
        cells[8] = candidate.first_oom_event && result.recorded_confs.size() == 1
                       ? fmt::format("OOM at event {}", *candidate.first_oom_event)
                       : std::string("OOM");
    }
    if (const std::string remark = remark_of(candidate, result); !remark.empty()) cells[9] = remark;
    table.add_row(std::move(cells));
    if (candidate.is_recommended) table.tone("remark", Tone::kGood);
    if (!candidate.failure.empty()) table.tone("remark", Tone::kBad);
  }
  return table;
}

/// "fails from 14950, runs from 15361, fails from 17615, …": the stretches of one policy's curve, in whole MiB. A
/// stretch between two whole MiB is left out; JSON has all of them to the byte.
std::string curve_text(const replay::Candidate& candidate, std::uint64_t need_bytes) {
  std::vector<std::pair<std::uint64_t, bool>> stretches;  // MiB and whether it runs from there
  for (const replay::CapacityPoint& point : candidate.sensitivity) {
    const std::uint64_t from = whole_mebibytes(point.capacity_bytes);
    if (!stretches.empty() && stretches.back().first == from) stretches.pop_back();
    if (stretches.empty() || stretches.back().second != (point.ooms == 0))
      stretches.emplace_back(from, point.ooms == 0);
  }
  std::string text;
  if (candidate.is_sampled) {
    text = fmt::format("of {} tried", candidate.sensitivity.size());
  } else if (candidate.examined_from_bytes > need_bytes) {
    text = fmt::format("not examined below {}", whole_mebibytes(candidate.examined_from_bytes));
  }
  for (const auto& [from, runs] : stretches)
    text += fmt::format("{}{} from {}", text.empty() ? "" : ", ", runs ? "runs" : "fails", from);
  return text;
}

/// The second table.
std::string curves_text(const replay::TuneResult& result) {
  Table curves({{"setting", "setting"}, {"capacities", "at other capacities, MiB"}});
  bool has_samples = false;
  for (const replay::Candidate& candidate : result.finalists) {
    if (candidate.sensitivity.empty()) continue;
    curves.add_row({label_of(candidate), curve_text(candidate, result.peak_requested_bytes)});
    has_samples |= candidate.is_sampled;
  }
  if (curves.empty()) return {};
  std::string text = "\n" + curves.text(output_screen());
  if (has_samples)
    text += "of N tried: the setting depends on the size of the device, so that nothing is known between those.\n";
  return text + "\n";
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
  const std::vector<std::string> now = conf_settings(result.recommended_conf);
  std::vector<std::string> kept, replaced;
  for (const std::string& setting : conf_settings(result.recorded_conf)) {
    if (std::ranges::find(result.dropped_settings, setting) != result.dropped_settings.end()) continue;
    (std::ranges::find(now, setting) != now.end() ? kept : replaced).push_back(setting);
  }
  std::string text = fmt::format("Set in the recording: \"{}\"", result.recorded_conf);
  if (!kept.empty()) text += fmt::format("; kept: {}", fmt::join(kept, ", "));
  if (!replaced.empty())
    text += fmt::format("; replaced by what the search found; remove: {}", fmt::join(replaced, ", "));
  if (!result.dropped_settings.empty()) {
    text += fmt::format("; left out, since PyTorch's native allocator does not take it: {}",
                        fmt::join(result.dropped_settings, ", "));
  }
  return text + (result.recommended_conf.empty() ? ".\n" : ". The whole line:\n");
}

/// For people, and exact as it is typed back.
std::string capacity_text(std::uint64_t bytes) {
  return fmt::format("{} (--capacity {})", format_bytes(bytes), format_size_exact(bytes));
}

OwnAdvice advice_of(const replay::Candidate& candidate) {
  const replay::Saving saving = candidate.saving.value_or(replay::Saving());
  return {.label = candidate.label,
          .policy = candidate.policy,
          .is_planned = candidate.is_planned,
          .peak_reserved_bytes = candidate.peak_reserved_bytes,
          .saved_bytes = saving.bytes,
          .saved_fraction = saving.fraction,
          .saved_safe_bytes = saving.safe_bytes,
          .device_calls = candidate.device_calls};
}

/// How Tenon would be set: as PyTorch, or by one of its own where that needs less.
std::string for_tenon(const replay::TuneResult& result, const TuneSubject& subject) {
  std::vector<OwnAdvice> own;
  std::string than, text;
  for (const bool is_chosen : {true, false}) {
    for (const replay::Candidate& candidate : result.finalists) {
      if (candidate.is_pytorch && candidate.is_for_tenon && is_chosen)
        text = "For Tenon, the same:\n" + indented(result.recommended_toml);
      if (!candidate.saving || candidate.is_for_tenon != is_chosen) continue;
      own.push_back(advice_of(candidate));
      than = candidate.saving->than.empty() ? "PyTorch's defaults" : fmt::format("'{}'", candidate.saving->than);
    }
  }
  return text + own_advice(own,
                           fmt::format("Tenon's own need less than any setting of PyTorch's that was tried, of which "
                                       "{} needs least:\n",
                                       than),
                           {.file = subject.files.front()}, true);
}

/// Whether it runs at that capacity, and the time was over before it was known to run at every larger one too.
bool is_open(const replay::Candidate& candidate, std::uint64_t room) {
  return candidate.is_pytorch && candidate.failure.empty() && candidate.ooms_at_capacity == 0 &&
         !candidate.is_sampled && candidate.safe_from_bytes.value_or(0) > room &&
         candidate.examined_from_bytes == candidate.safe_from_bytes;
}

/// When no setting of PyTorch's runs: one of Tenon's allocators may, at a price.
std::string without_recommendation(const replay::TuneResult& result, const TuneSubject& subject) {
  const std::string& capacity = subject.capacity;
  const std::uint64_t room = capacity.empty() ? ~std::uint64_t{0} : parse_size(capacity);
  const auto open = std::ranges::find_if(result.finalists,
                                         [&](const replay::Candidate& candidate) { return is_open(candidate, room); });
  if (open != result.finalists.end())
    return fmt::format(
        "\nNothing is recommended: {} runs in {}, and the time was over before it was known to run in whatever is "
        "larger. More of it: --budget\n",
        open->label.empty() ? "what PyTorch does by default" : fmt::format("'{}'", open->label), capacity);
  std::vector<const replay::Candidate*> own;
  for (const replay::Candidate& candidate : result.finalists)
    if (!candidate.is_pytorch && candidate.failure.empty() && candidate.safe_from_bytes &&
        *candidate.safe_from_bytes <= room)
      own.push_back(&candidate);
  const std::string where = capacity.empty() ? "any capacity that was tried" : capacity;
  std::string limit;
  for (const std::string& setting : conf_settings(result.recorded_conf)) {
    if (setting.starts_with("per_process_memory_fraction:"))
      limit = fmt::format("All were tried with {}, which was set in the recording.\n", setting);
  }
  if (own.empty()) {
    return fmt::format("\nNothing that was tried runs safely in {}: the peak of live memory alone is {}.\n", where,
                       format_bytes(result.peak_requested_bytes)) +
           limit;
  }
  // What asks the device least, and needs no plan where that is possible.
  const replay::Candidate& best = **std::ranges::min_element(own, {}, [](const replay::Candidate* candidate) {
    return std::pair(candidate->is_planned, candidate->device_calls);
  });
  const OwnAdvice advice = advice_of(best);
  return fmt::format(
             "\nNo setting of PyTorch that was tried runs safely in {}. Of Tenon's own allocators, {} does, from {} "
             "on, with {} device calls.\n{}",
             where, best.label, capacity_text(*best.safe_from_bytes), best.device_calls, limit) +
         how_to_use({&advice, 1}, {.file = subject.files.front()}, true);
}

/// The words of the table.
std::string tune_legend(const replay::TuneResult& result) {
  const bool has_pareto =
      std::ranges::any_of(result.finalists, [](const replay::Candidate& candidate) { return candidate.is_pareto; });
  std::string text =
      "safe from: it and every larger capacity runs. excess: peak reserved over the peak of live memory, minus 1.\n";
  if (has_pareto)
    text += "Pareto: no other row is better in safe capacity, peak or device calls without being worse in another.\n";
  return text;
}

}  // namespace

static std::string tune_advice(const replay::TuneResult& result, const TuneSubject& subject) {
  const std::vector<replay::Trace>& traces = subject.traces;
  std::string out;
  const auto best = std::ranges::find_if(result.finalists,
                                         [](const replay::Candidate& candidate) { return candidate.is_recommended; });
  const auto base =
      std::ranges::find_if(result.finalists, [](const replay::Candidate& candidate) { return candidate.is_baseline; });
  if (best == result.finalists.end() && result.is_interrupted) {
    out += "\nNothing is recommended: the search was interrupted before a setting was known to run safely.\n";
  } else if (best == result.finalists.end()) {
    out += without_recommendation(result, subject);
  } else {
    if (best->is_baseline) {
      out += result.recommended_conf.empty() ? "\nNo setting is better than PyTorch's defaults: leave them.\n"
                                             : "\nNo setting is better than what is set already:\n";
    } else {
      // A search that is interrupted early has not replayed what was set.
      const std::string instead =
          base == result.finalists.end() ? "" : fmt::format(" instead of {}", format_bytes(base->peak_reserved_bytes));
      out += fmt::format("\nRecommended: peak reserved {}{}. That is {:.1f} % more than {}.\n",
                         format_bytes(best->peak_reserved_bytes), instead, 100 * (best->relative_peak - 1),
                         traces.size() == 1
                             ? fmt::format("the peak of live memory, {}", format_bytes(result.peak_requested_bytes))
                             : fmt::format("the peak of live memory, on average over the {} histories", traces.size()));
    }
    out += about_recorded(result);
    if (!result.recorded_conf.empty() && result.recommended_conf.empty())
      out += "  unset PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF\n";
    if (!result.recommended_conf.empty()) out += export_lines(result.recommended_conf);
    if (best->safe_from_bytes) {
      out += fmt::format(
          "Smallest safe capacity: {}; every larger one {}{}{}.\n", capacity_text(*best->safe_from_bytes),
          best->is_sampled ? "that was tried runs too" : "runs too", traces.size() == 1 ? "" : ", with every history",
          best->is_sampled || best->is_smallest ? "" : "; smaller ones were not examined in that time");
    }
    out += for_tenon(result, subject);
  }
  out += curves_text(result);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    out += fmt::format("{}: {}.\n", traces[i].name, result.trust[i].fidelity.sentence());
    for (const std::string& caveat : result.trust[i].caveats)
      out += fmt::format("{}: with care: {}.\n", traces[i].name, caveat);
  }
  out += fmt::format("Tried {} combinations of PyTorch's settings in {:.1f} s.\n",
                     result.is_exhaustive ? fmt::format("all {}", result.space_size)
                                          : fmt::format("{} of {}", result.evaluated, result.space_size),
                     result.seconds);
  return out;
}

std::string tune_report(const replay::TuneResult& result, const TuneSubject& subject, TableFormat format,
                        const std::string& environment_json) {
  if (format == TableFormat::kJson) return tune_json(result, subject, environment_json);
  if (result.finalists.empty() && format != TableFormat::kCsv) return "Nothing was measured.\n";
  std::string text = render(tune_table(result, format), format, environment_json);
  if (format == TableFormat::kTable) text += tune_legend(result) + tune_advice(result, subject);
  if (format == TableFormat::kMarkdown) text += "\n```text" + tune_advice(result, subject) + "```\n";
  return text;
}

}  // namespace tenon
