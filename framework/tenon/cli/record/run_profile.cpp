// Which steps are recorded is the profiler's matter; here they are counted, and what was recorded is written.
#include <tenon/cli/record/run_profile.h>

#include <tenon/cli/results/recording_names.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/train/experiment_result.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::cli {

RunProfile::RunProfile(const ExperimentConfig& experiment, std::filesystem::path folder, ProgressSink& inner)
    : ForwardedProgress(inner), options_(experiment.section("profile")), folder_(std::move(folder)) {}

RunProfile::~RunProfile() = default;

void RunProfile::earlier_figures(const ExperimentResult& earlier) {
  ForwardedProgress::earlier_figures(earlier);
  earlier_steps_ = steps_ = earlier.steps;
}

void RunProfile::beginning() {
  ForwardedProgress::beginning();
  if (!options_.boolean("enabled")) return;
  const profiler::Schedule schedule = profiler::schedule({.wait = options_.integer("wait"),
                                                          .warmup = options_.integer("warmup"),
                                                          .active = options_.integer("active"),
                                                          .repeat = options_.integer("repeat"),
                                                          .skip_first = options_.integer("skip_first")});
  profile_ = std::make_unique<profiler::Profile>(
      profiler::ProfileOptions{.record_shapes = options_.boolean("shapes"),
                               .profile_memory = options_.boolean("memory"),
                               .with_stack = options_.boolean("stacks"),
                               .with_flops = options_.boolean("flops"),
                               .schedule = schedule,
                               .first_step = earlier_steps_,
                               .on_trace_ready = [this](profiler::Profile& ready) { write(ready); }});
  profile_->start();
  is_recording_ = true;
}

void RunProfile::step_begins() {
  ForwardedProgress::step_begins();
  if (is_recording_) profile_->resume();
}

/// What follows a step, a test or a saved state, is no part of the next one.
void RunProfile::progress(const Progress& now) {
  ForwardedProgress::progress(now);
  if (!is_recording_ || (now.phase != "train" && now.phase != "serve")) return;
  profile_->pause();
  profile_->step();
  ++steps_;
}

std::vector<std::string> RunProfile::finish() {
  if (is_recording_) profile_->stop();
  is_recording_ = false;
  return files_;
}

std::string RunProfile::nothing_recorded() const {
  if (!options_.boolean("enabled"))
    return options_.spec().empty() ? "" : "[profile] has settings and is off: profile.enabled = true records steps";
  if (is_recording_ || has_recorded_) return {};
  const std::int64_t before = options_.integer("skip_first") + options_.integer("wait") + options_.integer("warmup");
  if (earlier_steps_ > before)
    return fmt::format(
        "[profile] recorded nothing in this part of the run, which went on with step {}: the steps that it asks for "
        "are "
        "counted from the beginning of the run, and none of them came; profile.skip_first={} records the next ones",
        earlier_steps_ + 1, earlier_steps_);
  return fmt::format(
      "[profile] recorded nothing: it begins with step {} of this run (skip_first = {}, wait = {}, warmup = {}), which "
      "took {}: lower them, or let it take more",
      before + 1, options_.integer("skip_first"), options_.integer("wait"), options_.integer("warmup"),
      steps_ == 1 ? "one step" : fmt::format("{} steps", steps_));
}

std::int64_t RunProfile::cycle() const {
  const std::int64_t length = options_.integer("wait") + options_.integer("warmup") + options_.integer("active");
  return std::max<std::int64_t>(steps_ - options_.integer("skip_first"), 0) / length + 1;
}

void RunProfile::write(const profiler::Profile& profile) {
  if (profile.recording().events.empty()) return;  // it began behind the last step
  has_recorded_ = true;
  const std::string name = cycle() == 1 ? "profile" : fmt::format("profile.{}", cycle());
  const auto attempt = [&](const std::string& file, const auto& what) {
    try {
      if (earlier_steps_ > 0) keep_recording(folder_, file, earlier_steps_);
      what((folder_ / file).string());
      files_.push_back(file);
    } catch (const Error& problem) {
      if (!unwritten_) unwritten_ = problem;
    }
  };
  attempt(name + ".txt", [&](const std::string& path) {
    const auto group = options_.boolean("shapes") ? profiler::GroupBy::kShape : profiler::GroupBy::kName;
    const profiler::TableOptions table{.sort_by = options_.text("sort_by"), .row_limit = options_.integer("row_limit")};
    const auto rows_by = [&](profiler::GroupBy key) { return profile.key_averages(key).table(table); };
    std::string text = fmt::format("Operators\n{}\nModules\n{}", rows_by(group), rows_by(profiler::GroupBy::kModule));
    if (options_.boolean("stacks"))
      text += fmt::format("\nOperators by call site\n{}", rows_by(profiler::GroupBy::kStack));
    write_atomically(path, text);
  });
  attempt(name + ".chrome.json", [&](const std::string& path) { profile.export_chrome_trace(path); });
  attempt(name + ".folded", [&](const std::string& path) { profile.export_stacks(path); });
}

}  // namespace tenon::cli
