// Runs the checks, finds the shortest history behind each failure, and words the report.
#include <tenon/conformance/checks/checks.h>
#include <tenon/conformance/conformance.h>
#include <tenon/conformance/findings/consequences.h>
#include <tenon/conformance/findings/history_text.h>
#include <tenon/conformance/journal.h>
#include <tenon/conformance/journal_watch.h>
#include <tenon/conformance/process/isolation.h>
#include <tenon/conformance/shrink.h>
#include <tenon/conformance/speed.h>

#include <tenon/core/seconds_since.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace tenon::conformance {

namespace {

constexpr double kShrinkSeconds = 10;  // it takes one, unless the machine is busy
/// What HistoryRunner::finish does.
constexpr std::string_view kTheEnd = "\n    then blocks are freed, and the allocator is destroyed";

/// What is simple comes first, and the check that is there for a cause before others that meet it.
constexpr std::string_view kOrder[] = {"frees_all_at_the_end",
                                       "serves_every_size",
                                       "aligns",
                                       "never_overlaps",
                                       "respects_streams",
                                       "keeps_requests",
                                       "gives_back_what_it_took",
                                       "reuses_memory",
                                       "trims",
                                       "keeps_payloads",
                                       "shows_its_layout",
                                       "is_deterministic",
                                       "refuses_huge_sizes",
                                       "survives_out_of_memory",
                                       "retries_before_out_of_memory",
                                       "counts",
                                       "reports_truly",
                                       "needs_no_growing_memory",
                                       "survives_a_small_device",
                                       "survives_one_failure",
                                       "survives_a_dead_device",
                                       "takes_frees_from_other_threads",
                                       "survives_dying_threads"};

std::vector<Check> all_checks() {
  std::vector<Check> all;
  for (const auto& group : {checks_of_requests(), checks_of_placement(), checks_of_exhaustion(), checks_of_figures(),
                            checks_of_host_memory(), checks_of_failures(), checks_of_threads()})
    all.insert(all.end(), group.begin(), group.end());
  std::ranges::sort(all, {}, [](const Check& check) { return std::ranges::find(kOrder, check.name) - kOrder; });
  return all;
}

class KitRun {
 public:
  KitRun(const AllocatorInfo& info, const Options& options, const KitOptions& run)
      : options_(options), run_(run), info_(watched(info, journal_)), subject_{info_, options_, &journal_} {
    limits_ = {.deadline_seconds = run.deadline_seconds, .call_seconds = run.deadline_seconds / 10};
  }

  /// A slow allocator gets fewer histories, so that it still ends.
  void slow_down(const Speed& speed) {
    if (speed.is_absurd()) run_.histories = std::clamp(static_cast<int>(run_.histories * 2e4 / speed.pair_ns), 3, 40);
  }

  /// Nothing where it was stopped.
  std::optional<CheckResult> run_one(const Check& check);
  bool is_stopping() const { return run_.is_stopping && run_.is_stopping(); }

 private:
  Finding perform(const std::function<Finding()>& work, const Limits& limits, const std::function<bool()>& tick = {},
                  std::string* said = nullptr) {
    if (run_.is_isolated) return run_in_child(work, journal_, limits, tick, said);
    journal_.clear();
    return catch_all(work);
  }
  std::string with_history(Finding finding);

  const Options& options_;
  KitOptions run_;
  Limits limits_;
  Journal journal_;
  const AllocatorInfo info_;
  const Subject subject_;
  struct Failure {
    std::string key, check;
  };
  std::vector<Failure> failures_;  ///< each for a reason of its own, in their order
};

std::optional<CheckResult> KitRun::run_one(const Check& check) {
  CheckResult result{.name = check.name,
                     .promise = check.promise,
                     .failure = {},
                     .not_applicable = {},
                     .same_as = {},
                     .may_come_of = {},
                     .said = {}};
  const auto start = std::chrono::steady_clock::now();
  const auto tick = [&] {
    if (!run_.on_progress) return !is_stopping();
    Progress progress{.check = check.name, .seed = {}, .calls = journal_.calls(), .seconds = seconds_since(start)};
    if (journal_.has_seed()) progress.seed = journal_.seed();
    run_.on_progress(progress);
    return !is_stopping();
  };
  Finding finding = perform([&] { return check.run(subject_, run_); }, limits_, tick, &result.said);
  if (finding.cause == kStopped) return std::nullopt;
  if (finding.cause == cause::kNotApplicable) result.not_applicable = std::exchange(finding, {}).text;
  // One hang is enough to wait for.
  if (finding.cause.starts_with("hang")) limits_.call_seconds = std::min(limits_.call_seconds, 1.0);
  if (!finding.empty()) {
    const std::string key = failure_key(check.name, finding.cause);
    const auto same = std::ranges::find(failures_, key, &Failure::key);
    const auto origin =
        std::ranges::find_if(failures_, [&](const Failure& earlier) { return may_come_of(key, earlier.key); });
    if (same != failures_.end()) result.same_as = same->check;
    if (same == failures_.end() && origin != failures_.end()) result.may_come_of = origin->check;
    if (same == failures_.end() && origin == failures_.end()) {
      failures_.push_back({key, check.name});
      result.failure = with_history(std::move(finding));
    } else {
      result.failure = finding.text.substr(0, finding.text.find('\n'));
      result.said.clear();  // it was told with the first
    }
  }
  result.seconds = seconds_since(start);
  return result;
}

/// The finding's words with the shortest history that does the same, where the journal has one.
std::string KitRun::with_history(Finding finding) {
  const bool has_died = finding.cause.starts_with("signal") || finding.cause.starts_with("hang") ||
                        finding.cause.starts_with("code") || finding.cause == cause::kThrow;
  const std::string from = journal_.has_seed() ? fmt::format(" (seed {})", journal_.seed()) : "";
  const Operations history = journal_.operations();
  if (!(finding.is_of_a_history || has_died)) return finding.text;
  RunSettings settings = journal_.settings();
  std::string faults;
  if (settings.fault.index >= 0)
    faults = fmt::format("  when call {} to the source fails{}\n", settings.fault.index,
                         settings.fault.from_then_on ? " and every later one" : "");
  // What else is wrong must not come first; where it has to, everything is looked at.
  for (const bool is_narrow : {true, false}) {
    settings.only = is_narrow ? std::vector<std::string_view>{finding.cause} : std::vector<std::string_view>{};
    const auto run_in = [&](const Operations& candidate, const Limits& limits) {
      if (is_stopping()) return Finding();
      return perform([&] { return run_history(subject_, candidate, settings); }, limits);
    };
    const auto shrunk = shrink(history, finding.cause, run_in, kShrinkSeconds);
    if (!shrunk || is_stopping()) continue;
    const bool is_at_the_end = journal_.operations().size() > shrunk->history.size();
    if (shrunk->history.empty() && !is_at_the_end) {  // the constructor alone
      if (!faults.empty()) faults.insert(0, "\n").pop_back();
      return shrunk->finding.text + faults;
    }
    return fmt::format("{}\n{}  the shortest history that does it{}:\n{}{}", shrunk->finding.text, faults, from,
                       history_text(shrunk->history), is_at_the_end ? kTheEnd : "");
  }
  if (history.empty()) return finding.text + (from.empty() ? "" : "\n  in a history" + from);
  return fmt::format("{}\n{}  what led there{}:\n{}", finding.text, faults, from, history_text(history));
}

}  // namespace

std::vector<std::string> check_names() {
  std::vector<std::string> names;
  for (const Check& check : all_checks()) names.emplace_back(check.name);
  return names;
}

Report run(const AllocatorInfo& info, const Options* options, const KitOptions& run) {
  const Options defaults(info.options);
  const Options& chosen = options ? *options : defaults;
  Report report{.allocator = info.name, .options = chosen.spec(), .seed = run.seed, .checks = {}, .speed = {}};
  KitRun kit(info, chosen, run);
  if (run.measures_speed && run.is_isolated) report.speed = measure_speed(info, chosen, run.yardstick);
  if (report.speed) kit.slow_down(*report.speed);
  if (report.speed && run.after_speed) run.after_speed(*report.speed);
  for (const Check& check : all_checks()) {
    if (!run.only.empty() && std::string_view(check.name).find(run.only) == std::string_view::npos) continue;
    if (std::ranges::find(run.skip, check.name) != run.skip.end()) continue;
    std::optional<CheckResult> result = kit.is_stopping() ? std::nullopt : kit.run_one(check);
    if (!result) {
      ++report.left_out;
      continue;
    }
    report.checks.push_back(std::move(*result));
    if (run.after_each) run.after_each(report.checks.back());
  }
  return report;
}

bool Report::passed() const {
  return !checks.empty() &&
         std::all_of(checks.begin(), checks.end(), [](const CheckResult& check) { return check.passed(); });
}

std::string_view CheckResult::state() const {
  if (passed()) return not_applicable.empty() ? "passed" : "n/a";
  return !same_as.empty() ? "as in" : !may_come_of.empty() ? "after" : "FAILED";
}

std::string CheckResult::remark() const {
  if (!same_as.empty()) return fmt::format("{}: {}", same_as, failure);
  if (!may_come_of.empty()) return fmt::format("{}, and may come of it: {}", may_come_of, failure);
  return not_applicable.empty() ? promise : not_applicable;
}

std::string CheckResult::line() const {
  const std::string line = fmt::format("  {:<6}  {:<31}  {}\n", state(), name, remark());
  return is_first_of_its_cause() ? fmt::format("{}    {}\n", line, failure) : line;
}

std::string Report::heading() const {
  return fmt::format("{}{}{}, seed {}\n", allocator, options.empty() ? "" : ":", options, seed);
}

std::string Report::summary() const {
  const auto count = [this](auto is_one) { return std::ranges::count_if(checks, is_one); };
  const auto inapplicable = count([](const CheckResult& check) { return !check.not_applicable.empty(); });
  const auto same = count([](const CheckResult& check) { return !check.same_as.empty(); });
  const auto follow = count([](const CheckResult& check) { return !check.may_come_of.empty(); });
  std::string text = fmt::format("{} passed, {} failed", count(&CheckResult::passed) - inapplicable,
                                 count(&CheckResult::is_first_of_its_cause));
  if (inapplicable != 0) text += fmt::format(", {} not applicable", inapplicable);
  if (same != 0) text += fmt::format(", {} more for the same cause", same);
  if (follow != 0) text += fmt::format(", {} that may come of {}", follow, same == 0 ? "that" : "it");
  if (left_out != 0) text += fmt::format(", {} not run", left_out);
  text += '\n';
  if (speed) text += fmt::format("{}{}\n", speed->is_absurd() ? "warning: slow: " : "speed: ", speed->text());
  return text;
}

std::string Report::text() const {
  std::string text = heading();
  for (const CheckResult& check : checks) text += check.line() + check.said;
  return text + summary();
}

}  // namespace tenon::conformance
