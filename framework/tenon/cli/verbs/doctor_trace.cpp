// The diagnosis of a memory history: the same engine as the report of an out-of-memory.
#include <tenon/cli/verbs/doctor_trace.h>

#include <tenon/cli/oom_advice.h>
#include <tenon/core/units.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/replay/advise/would_fit.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/replay/results/trust.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tenon::cli {

namespace {

/// What was in use, and what could have been.
struct Question {
  bool is_pytorch = true;
  replay::FitCandidate current;
  std::vector<replay::FitCandidate> others;
  std::vector<std::string> dropped_settings;  ///< of the recording's, which PyTorch's native allocator does not take
};

std::string header(const replay::Trace& trace, const char* key) {
  const auto found = trace.header.find(key);
  return found == trace.header.end() ? std::string() : found->second;
}

Question question_of(const replay::Trace& trace, const DoctorTraceOptions& options) {
  Question question;
  std::string spec = options.allocator;
  // `tenon run` writes its allocator into what it records.
  if (spec.empty() && options.pytorch_conf.empty() && !header(trace, "allocator").empty()) {
    const std::string set = header(trace, "allocator_options");
    spec = header(trace, "allocator") + (set.empty() ? "" : ":" + set);
  }
  if (!spec.empty()) {
    question.is_pytorch = false;
    question.current = {spec, allocator_from_spec(spec)};
    question.others = replay::other_allocators(question.current.policy, trace.facts.max_request_bytes);
    return question;
  }
  std::string conf = options.pytorch_conf;
  if (conf.empty() && trace.recorded)
    conf = replay::valid_part(trace.recorded->pytorch_conf, &question.dropped_settings);
  question.current = {conf.empty() ? "PyTorch's defaults" : conf, replay::policy_of_conf(conf)};
  question.others = replay::other_pytorch_settings(conf, trace.facts.max_request_bytes);
  return question;
}

/// What is found out about one history.
struct Answer {
  std::string trace;
  std::optional<replay::RecordedOom> failed_request;  ///< the last one
  bool is_pytorch = true;
  replay::FitReport report;
  replay::Trust trust;
  std::vector<std::string> dropped_settings;
  bool is_known = true;  ///< false: the file is too poor, so that a setting did not run out proves nothing
};

Table empty_table(bool has_trace) {
  return Table({{"trace", "trace", has_trace},
                {"setting", "setting"},
                {"in_use", "in use"},
                {"fits", "fits"},
                {"peak_reserved_bytes", "peak reserved"},
                {"ooms", "OOMs"},
                {"first_oom_event", "first at event"},
                {"device_calls", "device calls"},
                {"set", "set", false},
                {"failure", "failure", false},
                {"failed_event", "failed at event", false}});
}

void add_rows(Table& table, const Answer& answer) {
  const replay::FitReport& report = answer.report;
  const auto row = [&](const replay::FitAttempt& attempt, bool is_current) {
    std::vector<tenon::Cell> cells(11);
    cells[0] = answer.trace;
    cells[1] = attempt.label;
    if (is_current) cells[2] = "yes";
    if (report.capacity_bytes != 0) cells[3] = !answer.is_known ? "unknown" : attempt.fits() ? "yes" : "no";
    cells[4] = Bytes{static_cast<std::int64_t>(attempt.peak_reserved_bytes)};
    cells[5] = static_cast<std::int64_t>(attempt.ooms);
    if (attempt.first_oom_event) cells[6] = static_cast<std::int64_t>(*attempt.first_oom_event);
    cells[7] = static_cast<std::int64_t>(attempt.device_calls);
    if (!is_current) cells[8] = answer.is_pytorch ? attempt.label : spec_of(attempt.policy);
    if (!attempt.failure.empty()) {
      for (const int figure : {4, 5, 7}) cells[static_cast<std::size_t>(figure)] = {};  // as far as it came: none
      cells[3] = "failed";
      cells[9] = attempt.failure;
    }
    if (attempt.failed_event) cells[10] = static_cast<std::int64_t>(*attempt.failed_event);
    table.add_row(std::move(cells));
  };
  row(report.current, true);
  for (const replay::FitAttempt& attempt : report.others) row(attempt, false);
}

std::string how_to_set(const replay::FitAttempt& best, bool is_pytorch) {
  if (!is_pytorch) return fmt::format("Set in the experiment:\n  allocator.name=\"{}\"\n", spec_of(best.policy));
  return fmt::format(
      "Set before the program starts:\n  export PYTORCH_ALLOC_CONF=\"{0}\"\n  export "
      "PYTORCH_CUDA_ALLOC_CONF=\"{0}\"   # before PyTorch 2.9\n",
      best.label);
}

/// What has gone wrong in itself: every such row is named, as `tenon replay` does.
std::vector<std::string> complaints(const replay::FitReport& report) {
  std::vector<std::string> sentences;
  if (!report.current.failure.empty()) sentences.push_back(report.current.complaint());
  for (const replay::FitAttempt& attempt : report.others)
    if (!attempt.failure.empty()) sentences.push_back(attempt.complaint());
  return sentences;
}

std::string remarks(const replay::Trust& trust) {
  std::string out;
  for (const std::string& caveat : trust.caveats) out += fmt::format("With care: {}.\n", caveat);
  return out;
}

/// More lives at once than the device has: that much is certain however poor the history is.
bool is_hopeless(const replay::FitReport& report) {
  return report.capacity_bytes != 0 && report.peak_requested_bytes > report.capacity_bytes;
}

std::string conclusion(const Answer& answer, bool is_capacity_from_file, const std::string& file) {
  const replay::FitReport& report = answer.report;
  const replay::Trust& trust = answer.trust;
  std::string out = "\n";
  if (!trust.refusal.empty() && !is_hopeless(report)) return out + "Nothing can be said: " + trust.refusal;
  if (!report.current.failure.empty())
    return out + fmt::format("Nothing can be said of '{}': its replay went wrong.\n", report.current.label);
  if (report.capacity_bytes == 0 && answer.failed_request) {
    return out +
           fmt::format(
               "{} could not be served in this recording, which does not say how large the device was: name it "
               "with --capacity. The table shows what each setting takes from one without limit.\n",
               format_bytes(answer.failed_request->bytes)) +
           remarks(trust);
  }
  if (report.capacity_bytes == 0) {
    out += fmt::format(
        "Nothing ran out of memory in this recording, and no --capacity was given: the table shows what each setting "
        "takes from a device without limit. {} live at the peak.\n",
        format_bytes(report.peak_requested_bytes));
    return out + remarks(trust);
  }
  if (is_capacity_from_file) {
    out += fmt::format("Ran out of memory: {} were asked for with {} left of {} that the process could have.\n",
                       format_bytes(answer.failed_request->bytes),
                       format_bytes(answer.failed_request->device_free_bytes), format_bytes(report.capacity_bytes));
  }
  if (!report.is_reproduced() && !is_capacity_from_file) {
    return out +
           fmt::format("It fits as it is: {} reserved of {}; nothing has to be set.\n",
                       format_bytes(report.current.peak_reserved_bytes), format_bytes(report.capacity_bytes)) +
           remarks(trust);
  }
  std::string sentence = report.sentence();
  sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
  out += sentence + ".\n";
  if (const replay::FitAttempt* best = report.best()) {
    out += how_to_set(*best, answer.is_pytorch);
  } else if (is_hopeless(report)) {
    out += "A larger device, a smaller batch or checkpointing is needed.\n";
  } else if (report.is_reproduced()) {
    out += fmt::format(
        "A larger device, a smaller batch or checkpointing is needed; `tenon tune {} --capacity {}` "
        "searches further settings.\n",
        file, format_size_exact(report.capacity_bytes));
  }
  return out + remarks(trust);
}

using Json = nlohmann::ordered_json;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The table's JSON with what its rows do not say.
Json json_of(const Answer& answer) {
  const replay::FitReport& report = answer.report;
  Table table = empty_table(false);
  add_rows(table, answer);
  Json json = Json::parse(render(table, TableFormat::kJson, environment_json()));
  json["trace"] = answer.trace;
  json["capacity_bytes"] = report.capacity_bytes == 0 ? Json(nullptr) : Json(report.capacity_bytes);
  json["peak_requested_bytes"] = report.peak_requested_bytes;
  json["failed_request"] = nullptr;
  if (const auto& oom = answer.failed_request) {
    json["failed_request"] = {{"event", oom->event},
                              {"bytes", oom->bytes},
                              {"stream", oom->stream},
                              {"reserved_bytes", oom->reserved_bytes},
                              {"device_free_bytes", oom->device_free_bytes}};
  }
  const bool has_capacity = report.capacity_bytes != 0;
  const replay::FitAttempt* const best = answer.is_known && has_capacity ? report.best() : nullptr;
  json["verdict"] = !answer.is_known                  ? "unknown"
                    : !report.current.failure.empty() ? "failed"
                    : !has_capacity                   ? "no capacity"
                    : is_hopeless(report)             ? "no allocator"
                    : !report.is_reproduced()         ? "fits as it is"
                    : best != nullptr                 ? "fits with"
                                                      : "none fits";
  json["recommendation"] =
      best == nullptr ? Json(nullptr) : Json(answer.is_pytorch ? best->label : spec_of(best->policy));
  json["refused"] = answer.is_known ? Json(nullptr) : Json(answer.trust.refusal);
  json["caveats"] = answer.trust.caveats;
  if (!answer.is_known) json["caveats"].push_back(first_line(answer.trust.refusal));
  json["dropped_settings"] = answer.dropped_settings;
  return json;
}

/// One document whatever the number of devices: of several, each is an element of "traces".
std::string document_of(const std::vector<Answer>& answers) {
  Json json;
  if (answers.size() == 1) {
    json = json_of(answers.front());
  } else {
    json["schema_version"] = 1;
    json["environment"] = Json::parse(environment_json());
    for (const Answer& answer : answers) {
      Json part = json_of(answer);
      part.erase("schema_version");
      part.erase("environment");
      json["traces"].push_back(std::move(part));
    }
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Answer answer_of(const replay::Trace& trace, std::uint64_t capacity, const DoctorTraceOptions& options) {
  const Question question = question_of(trace, options);
  Answer answer;
  answer.trace = trace.name;
  if (!trace.ooms.empty()) answer.failed_request = trace.ooms.back();
  answer.is_pytorch = question.is_pytorch;
  answer.report = replay::what_would_fit(trace, question.current, question.others, capacity);
  answer.trust = replay::judge(
      trace, options.pytorch_conf.empty() ? std::nullopt : std::optional<std::string>(options.pytorch_conf));
  answer.dropped_settings = question.dropped_settings;
  if (!question.dropped_settings.empty()) {
    answer.trust.caveats.push_back(fmt::format(
        "{} was recorded with {}, which PyTorch's native allocator does not take: left out, so that what was "
        "in use is not what is replayed",
        trace.name, fmt::join(question.dropped_settings, ", ")));
  }
  answer.is_known = answer.trust.refusal.empty() || is_hopeless(answer.report);
  return answer;
}

}  // namespace

ExitCode doctor_trace(const DoctorTraceOptions& options) {
  const std::uint64_t given = options.capacity.empty() ? 0 : parse_size(options.capacity);
  const std::vector<replay::Trace> traces = replay::read_traces(options.file);
  for (const PluginProblem& problem : load_all_plugins()) {
    if (!options.quiet) say(fmt::format("tenon: left out: {}", problem.problem));
  }
  std::vector<Answer> answers;
  for (const replay::Trace& trace : traces) {
    if (!options.quiet) {
      for (const std::string& note : trace.notes) say(fmt::format("{}: {}", trace.name, note));
    }
    answers.push_back(answer_of(trace, given != 0 ? given : replay::capacity_at_failure(trace).value_or(0), options));
  }
  const bool has_several = answers.size() > 1;
  if (options.format == TableFormat::kJson) {
    print(document_of(answers));
  } else if (options.format == TableFormat::kTable) {
    for (const Answer& answer : answers) {
      Table table = empty_table(false);
      add_rows(table, answer);
      if (has_several) print(answer.trace + "\n");
      print(table.text() + conclusion(answer, given == 0, options.file));
    }
  } else {
    Table table = empty_table(has_several);
    for (const Answer& answer : answers) add_rows(table, answer);
    print(render(table, options.format, environment_json()));
  }
  bool has_answers = true;
  for (const Answer& answer : answers) {
    const std::vector<std::string> failures = complaints(answer.report);
    for (const std::string& sentence : failures) say(fmt::format("{}: {}", answer.trace, sentence));
    has_answers &= answer.is_known && failures.empty();
    if (!answer.is_known && options.format != TableFormat::kTable) say(answer.trust.refusal);
  }
  return has_answers ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace tenon::cli
