// Findings and diagnoses in tables, sentences and JSON.
#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/replay/results/result_document.h>
#include <tenon/report/replay/doctor_report.h>
#include <tenon/report/replay/export_lines.h>
#include <tenon/report/replay/growth_report.h>
#include <tenon/report/replay/own_advice.h>
#include <tenon/report/text/command_line.h>
#include <tenon/runtime/environment.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <functional>
#include <numeric>

namespace tenon {

namespace {

using Json = nlohmann::ordered_json;

/// `for_people`: the setting in use is marked beside its name, and has no column for it.
Table empty_table(bool has_trace, bool for_people) {
  return Table({{"trace", "trace", has_trace},
                {"setting", "setting"},
                {"kind", "kind", false},
                {"in_use", "in use", !for_people},
                {"fits", "fits", true, 4},
                {"peak_reserved_bytes", "peak reserved", true, 3},
                {"saved_bytes", "saves", true, 1},
                {"saved_fraction", "saves", false},
                {"ooms", "OOMs", true, 2},
                {"first_oom_event", "first OOM at event"},
                {"device_calls", "device calls"},
                {"set", "set", false},
                {"failure", "failure", false},
                {"failed_event", "failed at event", false}});
}

/// Tenon's own that need less than whatever PyTorch's setting fits with least, and by how much. Slow ones do not count.
std::vector<OwnAdvice> own_that_save(const replay::Diagnosis& diagnosis) {
  std::vector<OwnAdvice> own;
  const replay::FitAttempt* const least = diagnosis.report.least();
  for (const replay::FitAttempt& attempt : diagnosis.report.own) {
    if (!attempt.fits() || attempt.is_slow) continue;
    const double of_least = least == nullptr
                                ? 0
                                : static_cast<double>(attempt.peak_reserved_bytes) /
                                      static_cast<double>(std::max<std::uint64_t>(least->peak_reserved_bytes, 1));
    if (of_least >= 1 - replay::kNearPeak) continue;
    own.push_back({.label = attempt.label,
                   .policy = attempt.policy,
                   .is_planned = attempt.is_planned,
                   .peak_reserved_bytes = attempt.peak_reserved_bytes,
                   .device_calls = attempt.device_calls});
    if (least == nullptr) continue;
    own.back().saved_bytes = static_cast<std::int64_t>(least->peak_reserved_bytes - attempt.peak_reserved_bytes);
    own.back().saved_fraction = 1 - of_least;
  }
  return own;
}

class RowMaker {
 public:
  RowMaker(Table& table, const replay::Diagnosis& diagnosis, bool for_people)
      : table_(table), diagnosis_(diagnosis), for_people_(for_people), own_(own_that_save(diagnosis)) {}

  void add_all() {
    const replay::FitReport& report = diagnosis_.report;
    if (!diagnosis_.is_interrupted || report.current.failure.empty()) add(report.current, Kind::kCurrent);
    for (const replay::FitAttempt& attempt : report.others) add(attempt, Kind::kOther);
    for (const replay::FitAttempt& attempt : report.own) add(attempt, Kind::kOwn);
  }

 private:
  enum class Kind { kCurrent, kOther, kOwn };

  void add(const replay::FitAttempt& attempt, Kind kind) {
    const bool has_capacity = diagnosis_.report.capacity_bytes != 0;
    std::vector<TableCell> cells(14);
    cells[0] = diagnosis_.trace;
    cells[1] = for_people_ ? shown_name(attempt, kind) : attempt.label;
    cells[2] = kind != Kind::kOwn && diagnosis_.is_pytorch ? "pytorch" : "tenon";
    if (kind == Kind::kCurrent) cells[3] = "yes";
    if (has_capacity) cells[4] = !diagnosis_.is_known ? "unknown" : attempt.fits() ? "yes" : "no";
    cells[5] = Bytes{static_cast<std::int64_t>(attempt.peak_reserved_bytes)};
    if (kind == Kind::kOwn) add_saving(cells, attempt);
    cells[8] = static_cast<std::int64_t>(attempt.ooms);
    if (attempt.first_oom_event) cells[9] = static_cast<std::int64_t>(*attempt.first_oom_event);
    cells[10] = static_cast<std::int64_t>(attempt.device_calls);
    if (kind != Kind::kCurrent) cells[11] = diagnosis_.how_to_set(attempt, kind == Kind::kOwn);
    if (!attempt.failure.empty()) {
      for (const std::size_t figure : {5, 8, 10}) cells[figure] = {};  // as far as it came: none
      cells[4] = "failed";
      cells[12] = attempt.failure;
    }
    if (attempt.failed_event) cells[13] = static_cast<std::int64_t>(*attempt.failed_event);
    table_.add_row(std::move(cells));
    if (has_capacity && diagnosis_.is_known) table_.tone("fits", attempt.fits() ? Tone::kGood : Tone::kBad);
  }

  std::string shown_name(const replay::FitAttempt& attempt, Kind kind) const {
    if (kind == Kind::kCurrent) return attempt.label + " (in use)";
    return kind == Kind::kOwn && diagnosis_.is_pytorch ? "tenon " + attempt.label : attempt.label;
  }

  void add_saving(std::vector<TableCell>& cells, const replay::FitAttempt& attempt) const {
    const auto own = std::ranges::find(own_, attempt.label, &OwnAdvice::label);
    if (own == own_.end() || own->saved_bytes == 0) return;
    cells[6] = for_people_ ? TableCell(saving_text(own->saved_bytes, own->saved_fraction))
                           : TableCell(Bytes{own->saved_bytes});
    cells[7] = Ratio{own->saved_fraction};
  }

  Table& table_;
  const replay::Diagnosis& diagnosis_;
  const bool for_people_;
  const std::vector<OwnAdvice> own_;
};

void add_rows(Table& table, const replay::Diagnosis& diagnosis, bool for_people) {
  RowMaker(table, diagnosis, for_people).add_all();
}

/// What Tenon's own would need, where that is less.
std::string advice_on_own(const replay::Diagnosis& diagnosis, const std::string& file) {
  const replay::FitAttempt* const least = diagnosis.report.least();
  const std::string heading =
      least == nullptr
          ? "Tenon's own that would have fitted:\n"
          : fmt::format("Tenon's own that need less than '{}', which needs least of the others:\n", least->label);
  return own_advice(own_that_save(diagnosis), heading, {.file = file, .device = diagnosis.device},
                    diagnosis.is_pytorch);
}

std::string lines_to_paste(const replay::FitAttempt& best, const replay::Diagnosis& diagnosis) {
  if (!diagnosis.is_pytorch)
    return fmt::format("Set in the experiment:\n  allocator.name=\"{}\"\n", diagnosis.how_to_set(best));
  return "Set before the program starts:\n" + export_lines(best.label);
}

std::string remarks(const replay::Trust& trust) {
  std::string out;
  for (const std::string& caveat : trust.caveats) out += fmt::format("With care: {}.\n", caveat);
  return out;
}

std::string conclusion(const replay::Diagnosis& diagnosis, bool is_capacity_given, const std::string& file) {
  const replay::FitReport& report = diagnosis.report;
  const replay::Trust& trust = diagnosis.trust;
  std::string out = "\n";
  if (diagnosis.is_interrupted) return out + "Interrupted: the settings above were replayed until then.\n";
  if (!trust.refusal.empty() && !diagnosis.is_hopeless()) return out + "Nothing can be said: " + trust.refusal;
  if (!report.current.failure.empty())
    return out + fmt::format("Nothing can be said of '{}': its replay went wrong.\n", report.current.label);
  if (report.capacity_bytes == 0 && diagnosis.failed_request) {
    return out +
           fmt::format(
               "A request of {} failed in this recording, which does not say how large the device was: give its size "
               "with --capacity. The table shows what each setting reserves on a device without limit.\n",
               format_bytes(diagnosis.failed_request->bytes)) +
           remarks(trust);
  }
  if (report.capacity_bytes == 0) {
    out += fmt::format(
        "Nothing ran out of memory in this recording, and no --capacity was given: the table shows what each setting "
        "reserves on a device without limit. The peak of live memory is {}.\n",
        format_bytes(report.peak_requested_bytes));
    return out + advice_on_own(diagnosis, file) + remarks(trust);
  }
  if (!is_capacity_given) {
    out += fmt::format("Ran out of memory: a request of {} failed; {} of the {} that the process may use were free.\n",
                       format_bytes(diagnosis.failed_request->bytes),
                       format_bytes(diagnosis.failed_request->device_free_bytes), format_bytes(report.capacity_bytes));
  }
  if (!report.is_reproduced() && is_capacity_given) {
    return out +
           fmt::format("It fits as it is, with {} reserved of {}: nothing has to be set.\n",
                       format_bytes(report.current.peak_reserved_bytes), format_bytes(report.capacity_bytes)) +
           remarks(trust);
  }
  std::string sentence = report.sentence();
  sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
  out += sentence + ".\n";
  if (const replay::FitAttempt* best = report.best()) {
    out += lines_to_paste(*best, diagnosis);
  } else if (diagnosis.is_hopeless()) {
    out += "A larger device, a smaller batch or checkpointing is needed.\n";
  } else if (report.is_reproduced()) {
    out += fmt::format(
        "A larger device, a smaller batch or checkpointing is needed. Further settings are searched by\n"
        "  tenon tune {} --capacity {}\n",
        shell_word(file), format_size_exact(report.capacity_bytes));
  }
  if (report.is_reproduced()) out += advice_on_own(diagnosis, file);
  return out + remarks(trust);
}

/// The words of the table.
std::string legend(const replay::Diagnosis& diagnosis) {
  if (diagnosis.report.capacity_bytes == 0) return {};
  return "fits: nothing runs out of memory. OOMs: requests that were refused; where there are any, a smaller peak is "
         "no saving.\n";
}

/// "    46.7 MiB  89.4 %  " of so many.
std::string share_of(std::uint64_t bytes, std::uint64_t all) {
  return fmt::format("  {:>10}  {:>5.1f} %  ", format_bytes(bytes),
                     100 * static_cast<double>(bytes) / static_cast<double>(all));
}

/// What lived at the peak by what it was for.
std::string purposes(const replay::Diagnosis& diagnosis) {
  const std::uint64_t all = std::accumulate(diagnosis.purposes.begin(), diagnosis.purposes.end(), std::uint64_t{0});
  if (all == 0) return {};
  std::string text = fmt::format("What the {} that lived or were asked for at the peak are for:\n", format_bytes(all));
  std::vector<std::size_t> order(diagnosis.purposes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return diagnosis.purposes[i]; });
  for (const std::size_t i : order)
    if (diagnosis.purposes[i] != 0)
      text += fmt::format("{}{}\n", share_of(diagnosis.purposes[i], all), name_of(static_cast<Purpose>(i)));
  return text;
}

/// Who held what lived at the peak.
std::string holders(const replay::Diagnosis& diagnosis) {
  constexpr std::size_t kNamed = 8;
  std::uint64_t bytes = 0, blocks = 0, rest = 0, named = 0;
  for (const auto& [site, holder] : diagnosis.holders) bytes += holder.bytes, blocks += holder.blocks;
  if (bytes == 0) return {};
  if (diagnosis.holders.size() == 1 && diagnosis.holders.front().second.stack == 0)
    return "The recording has no call stacks: which functions held this is not known. Snapshots may have them: "
           "PyTorch's, and memory.pickle of `tenon run --record snapshot` with report.stacks=true.\n";
  std::string text = fmt::format("Who held the {} that lived or were asked for at the peak ({}):\n",
                                 format_bytes(bytes), counted(blocks, "block"));
  for (const auto& [site, holder] : diagnosis.holders) {
    if (named++ >= kNamed) {
      rest += holder.bytes;
      continue;
    }
    text += fmt::format("{}{:>6} block{}  {}\n", share_of(holder.bytes, bytes), holder.blocks,
                        holder.blocks == 1 ? " " : "s", site);
  }
  if (rest != 0) text += fmt::format("  {:>10}  by {} more\n", format_bytes(rest), named - kNamed);
  return text;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Fixed words.
const char* verdict_of(const replay::Diagnosis& diagnosis, const replay::FitAttempt* best) {
  const replay::FitReport& report = diagnosis.report;
  if (diagnosis.is_interrupted) return "interrupted";
  if (!diagnosis.is_known) return "unknown";
  if (!report.current.failure.empty()) return "failed";
  if (report.capacity_bytes == 0) return "no capacity";
  if (diagnosis.is_hopeless()) return "no allocator";
  if (!report.is_reproduced()) return "fits as it is";
  return best != nullptr ? "fits with" : "none fits";
}

/// The table's JSON with what its rows do not say.
Json json_of(const replay::Diagnosis& diagnosis, const std::string& environment_json) {
  const replay::FitReport& report = diagnosis.report;
  Table table = empty_table(false, false);
  add_rows(table, diagnosis, false);
  Json json = Json::parse(render(table, TableFormat::kJson, environment_json));
  json["trace"] = diagnosis.trace;
  json["capacity_bytes"] = report.capacity_bytes == 0 ? Json(nullptr) : Json(report.capacity_bytes);
  json["peak_requested_bytes"] = report.peak_requested_bytes;
  json["failed_request"] = nullptr;
  if (const auto& oom = diagnosis.failed_request) {
    json["failed_request"] = {{"event", oom->event},
                              {"bytes", oom->bytes},
                              {"stream", oom->stream},
                              {"reserved_bytes", oom->reserved_bytes},
                              {"device_free_bytes", oom->device_free_bytes}};
  }
  const bool has_capacity = report.capacity_bytes != 0;
  const replay::FitAttempt* const best = diagnosis.is_known && has_capacity ? report.best() : nullptr;
  json["verdict"] = verdict_of(diagnosis, best);
  json["recommendation"] = best == nullptr ? Json(nullptr) : Json(diagnosis.how_to_set(*best));
  json["refused"] = diagnosis.is_known ? Json(nullptr) : Json(diagnosis.trust.refusal);
  json["caveats"] = diagnosis.trust.caveats;
  if (!diagnosis.is_known) json["caveats"].push_back(first_line(diagnosis.trust.refusal));
  json["dropped_settings"] = diagnosis.dropped_settings;
  json["interrupted"] = diagnosis.is_interrupted;
  json["purposes"] = Json::object();
  for (std::size_t i = 0; i < diagnosis.purposes.size(); ++i)
    json["purposes"][std::string(name_of(static_cast<Purpose>(i)))] = diagnosis.purposes[i];
  json["holders"] = Json::array();
  for (const auto& [site, holder] : diagnosis.holders)
    json["holders"].push_back({{"site", site}, {"bytes", holder.bytes}, {"blocks", holder.blocks}});
  json["growth"] = Json::parse(growth_json(diagnosis));
  return json;
}

/// One document whatever the number of devices: of several, each is an element of "traces".
std::string document_of(const std::vector<replay::Diagnosis>& diagnoses, const std::string& environment_json) {
  Json json;
  if (diagnoses.size() == 1) {
    json = json_of(diagnoses.front(), environment_json);
  } else {
    json = replay::begin_result_document<Json>(environment_json);
    json["traces"] = Json::array();  // of a file that was interrupted before the first there is none
    for (const replay::Diagnosis& diagnosis : diagnoses) {
      Json part = json_of(diagnosis, environment_json);
      part.erase("schema_version");
      part.erase("environment");
      json["traces"].push_back(std::move(part));
    }
  }
  return replay::text_of_document(json);
}

}  // namespace

Table findings_table(const std::vector<HealthFinding>& findings) {
  Table table({{"what", "what"},
               {"state", "state", true, 3},
               {"detail", "detail"},
               {"remedy", "remedy", true, 1},
               {"needed", "needed", false}});
  const auto text = [](const std::string& words) { return words.empty() ? TableCell() : TableCell(words); };
  constexpr const char* kStates[] = {"ok", "missing", "broken"};
  for (const HealthFinding& finding : findings) {
    const bool is_ok = finding.state == HealthState::kOk;
    table.add_row({finding.what, kStates[static_cast<int>(finding.state)], text(finding.detail), text(finding.remedy),
                   finding.needed});
    table.tone("state", is_ok ? Tone::kGood : finding.needed ? Tone::kBad : Tone::kWarning);
  }
  return table;
}

std::string machine_heading() {
  const Environment& env = environment();
  return fmt::format("tenon {} ({}, {}) on {}\n{}, {} cores, {}\n\n", env.version, env.compiler, env.build_type,
                     env.system, env.cpu, env.cores, format_bytes(env.memory_bytes));
}

std::string diagnosis_report(const std::vector<replay::Diagnosis>& diagnoses, bool is_capacity_given,
                             const std::string& file, TableFormat format, const std::string& environment_json) {
  if (format == TableFormat::kJson) return document_of(diagnoses, environment_json);
  const bool has_several = diagnoses.size() > 1;
  if (format != TableFormat::kTable) {
    const bool for_people = format == TableFormat::kMarkdown;
    Table table = empty_table(has_several, for_people);
    for (const replay::Diagnosis& diagnosis : diagnoses) add_rows(table, diagnosis, for_people);
    return render(table, format, environment_json);
  }
  std::string text;
  for (const replay::Diagnosis& diagnosis : diagnoses) {
    Table table = empty_table(false, true);
    add_rows(table, diagnosis, true);
    if (has_several) text += diagnosis.trace + "\n";
    text += table.text(output_screen()) + legend(diagnosis) + conclusion(diagnosis, is_capacity_given, file) +
            purposes(diagnosis) + holders(diagnosis) + pins_text(diagnosis) + growth_text(diagnosis);
  }
  return text;
}

}  // namespace tenon
