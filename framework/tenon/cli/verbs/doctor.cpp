// `tenon doctor`: what is missing here, what for, and how to get it; with a FILE, the settings under which that run
// would have fitted.
#include <tenon/cli/health.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/verb.h>

#include <tenon/core/spec_names.h>
#include <tenon/core/units.h>
#include <tenon/memory/pytorch/conf.h>
#include <tenon/replay/advise/diagnosis.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/report/replay/doctor_report.h>
#include <tenon/report/text/command_line.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

namespace tenon::cli {

namespace {

struct DoctorOptions {
  std::string file;
  std::string capacity;
  std::string allocator;
  std::string pytorch_conf;
  std::vector<std::string> also;
  TableFormat format = TableFormat::kTable;
  bool names_all_frames = false;
  bool quiet = false;
};

ExitCode doctor_machine(const DoctorOptions& options) {
  const std::vector<HealthFinding> findings = check_health();
  if (options.format == TableFormat::kTable) print(machine_heading());
  print(render(findings_table(findings), options.format, environment_json()));
  const bool is_healthy = std::ranges::all_of(
      findings, [](const HealthFinding& finding) { return finding.state == HealthState::kOk || !finding.needed; });
  return is_healthy ? ExitCode::kDone : ExitCode::kFailed;
}

/// Recorded under a policy that is not among the plugins here, which nobody can replay: what to pass.
void require_recorded_policy(const replay::Trace& trace, const DoctorOptions& options) {
  const std::optional<replay::RecordedPolicy> recorded = replay::recorded_policy(trace);
  if (!recorded || !options.allocator.empty() || !options.pytorch_conf.empty()) return;
  const std::vector<std::string> known = allocator_names();
  if (std::ranges::find(known, recorded->name) != known.end()) return;
  std::error_code absent;
  const bool is_there = !recorded->plugin.empty() && std::filesystem::exists(recorded->plugin, absent);
  const std::string file = is_there ? recorded->plugin : "PATH/" + recorded->name + ".so";
  throw ConfigError(
      fmt::format("{} was recorded under the allocator '{}', which is not in a plugin folder: name its plugin{}\n"
                  "  tenon doctor {}{} --allocator {}",
                  trace.name, recorded->name, is_there ? "" : ", for PATH", shell_word(options.file),
                  options.capacity.empty() ? "" : " --capacity " + shell_word(options.capacity),
                  shell_word(spec_with(file, recorded->options))));
}

/// Throws TraceError for a file that cannot be read.
ExitCode doctor_history(const DoctorOptions& options) {
  const replay::DiagnosisRequest request{.capacity_bytes = options.capacity.empty() ? 0 : parse_size(options.capacity),
                                         .allocator = options.allocator,
                                         .pytorch_conf = options.pytorch_conf,
                                         .also = options.also,
                                         .names_all_frames = options.names_all_frames,
                                         .is_stopping = [] { return interrupt_signal() != 0; }};
  const ProgressLine progress(options.quiet);
  const std::vector<replay::Trace> traces =
      replay::read_traces(options.file, {.with_stacks = true, .with_columns = true});
  for (const PluginProblem& problem : load_all_plugins()) {
    if (!options.quiet) say(fmt::format("tenon: left out: {}", problem.problem));
  }
  for (const replay::Trace& trace : traces) require_recorded_policy(trace, options);
  catch_interrupts(options.quiet ? "" : "ending with the settings that are replayed");
  std::vector<replay::Diagnosis> diagnoses;
  for (const replay::Trace& trace : traces) {
    if (interrupt_signal() != 0) break;
    if (!options.quiet) {
      for (const std::string& note : trace.notes) say(fmt::format("{}: {}", trace.name, note));
    }
    diagnoses.push_back(replay::diagnose(trace, request));
    if (traces.size() > 1) diagnoses.back().device = trace.device;
  }
  print(diagnosis_report(diagnoses, request.capacity_bytes != 0, options.file, options.format, environment_json()));
  if (interrupt_signal() != 0) {
    say(fmt::format("tenon: ended by {}; the table shows what was replayed until then", interrupt_name()));
    return interrupted_exit_code();
  }
  bool has_answers = true;
  for (const replay::Diagnosis& diagnosis : diagnoses) {
    const std::vector<std::string> complaints = diagnosis.complaints();
    for (const std::string& sentence : complaints) say(fmt::format("{}: {}", diagnosis.trace, sentence));
    has_answers &= diagnosis.is_known && complaints.empty();
    if (!diagnosis.is_known && options.format != TableFormat::kTable) say(diagnosis.trust.refusal);
  }
  return has_answers ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace

void add_doctor(Verb program, Outcome& outcome) {
  auto options = std::make_shared<DoctorOptions>();
  const Verb verb =
      program.add_verb("doctor", "check this installation; with a FILE: why memory ran out and what would have fitted");
  verb.add_option("file", options->file, "a memory history that ended out of memory").type_name("FILE");
  const Option capacity =
      add_capacity_option(verb, options->capacity, "memory of the device; default: what the file says");
  const Option allocator =
      verb.add_option("--allocator,-a", options->allocator, "the allocator of Tenon that was in use").type_name("SPEC");
  const Option conf = verb.add_option("--pytorch-conf", options->pytorch_conf,
                                      "PyTorch's settings that were in use; default: what the file says")
                          .type_name("STRING")
                          .excludes(allocator);
  const Option also =
      verb.add_option("--try", options->also, "a further allocator of Tenon's to try").type_name("SPEC");
  const Option all_frames =
      verb.add_flag("--all-frames", options->names_all_frames,
                    "whole call stacks; default: the program's own functions, or Tenon's where there are none");
  add_format_option(verb, options->format);
  add_quiet_option(verb, options->quiet);
  verb.footer(example("tenon doctor memory.pickle --capacity 24GiB"));
  verb.callback([=, &outcome] {
    const bool needs_file =
        capacity.is_given() || allocator.is_given() || conf.is_given() || also.is_given() || all_frames.is_given();
    if (options->file.empty() && needs_file)
      throw ConfigError(
          "tenon doctor: --capacity, --allocator, --pytorch-conf, --try and --all-frames need the file of a memory "
          "history");
    options->pytorch_conf = conf_of_line(options->pytorch_conf);
    outcome.exit_code = options->file.empty() ? doctor_machine(*options) : doctor_history(*options);
  });
}

}  // namespace tenon::cli
