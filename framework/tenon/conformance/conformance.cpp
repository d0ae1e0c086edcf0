// Runs the checks and words the report.
#include <tenon/conformance/checks.h>
#include <tenon/conformance/conformance.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>

namespace tenon::conformance {

namespace {

std::vector<Check> all_checks() {
  std::vector<Check> all;
  for (const auto& group : {checks_of_requests(), checks_of_histories(), checks_of_threads()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

CheckResult run_one(const Check& check, const Subject& subject, const RunOptions& options) {
  CheckResult result{.name = check.name, .promise = check.promise};
  const auto start = std::chrono::steady_clock::now();
  try {
    result.failure = check.run(subject, options);
  } catch (const std::exception& error) {
    result.failure = fmt::format("an error where none may be: {}", error.what());
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

std::vector<std::string> check_names() {
  std::vector<std::string> names;
  for (const Check& check : all_checks()) names.emplace_back(check.name);
  return names;
}

Report run(const AllocatorInfo& info, const Options* options, const RunOptions& run) {
  const Options defaults(info.options);
  const Subject subject{info, options ? *options : defaults};
  Report report{.allocator = info.name, .options = subject.options.spec(), .seed = run.seed};
  for (const Check& check : all_checks()) {
    if (!run.only.empty() && std::string_view(check.name).find(run.only) == std::string_view::npos) continue;
    report.checks.push_back(run_one(check, subject, run));
    if (run.after_each) run.after_each(report.checks.back());
  }
  return report;
}

bool Report::passed() const {
  return !checks.empty() &&
         std::all_of(checks.begin(), checks.end(), [](const CheckResult& check) { return check.passed(); });
}

std::string Report::text() const {
  std::string text = fmt::format("{}{}{}, seed {}\n", allocator, options.empty() ? "" : ":", options, seed);
  std::size_t failed = 0;
  for (const CheckResult& check : checks) {
    text += fmt::format("  {}  {:<31}  {}\n", check.passed() ? "passed" : "FAILED", check.name, check.promise);
    if (!check.passed()) text += fmt::format("    {}\n", check.failure), ++failed;
  }
  return text + fmt::format("{} passed, {} failed\n", checks.size() - failed, failed);
}

}  // namespace tenon::conformance
