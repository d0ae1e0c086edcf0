// Taking the figures, and who shows them.
#include <tenon/cli/live/run_live.h>
#include <tenon/cli/terminal/print.h>
#include <tenon/cli/terminal/terminal.h>
#include <tenon/core/error.h>
#include <tenon/device/device_driver.h>
#include <tenon/device/device_state.h>
#include <tenon/device/device_use.h>
#include <tenon/report/run/run_figures.h>
#include <tenon/runtime/device_setup.h>

#include <fmt/format.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace tenon::cli {

namespace {

constexpr std::size_t kLosses = 512, kNotes = 100;

/// Whether the terminal shows more than ASCII, as the user's locale says.
bool has_unicode() {
  static const bool kHas = [] {
    const locale_t users = ::newlocale(LC_CTYPE_MASK, "", nullptr);
    if (users == nullptr) return false;
    const bool is_utf8 = std::string_view(::nl_langinfo_l(CODESET, users)) == "UTF-8";
    ::freelocale(users);
    return is_utf8;
  }();
  return kHas;
}

std::optional<double> busy_share(Device device) {
  auto* const reporter = dynamic_cast<ReportsUse*>(&configured_backend(std::string(device.type().name())));
  if (reporter == nullptr) return std::nullopt;
  try {
    return reporter->look(device.index()).busy;
  } catch (const Error&) {  // what cannot be looked at has no figure
    return std::nullopt;
  }
}

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

RunLive::RunLive(const ExperimentConfig& experiment, LiveSettings settings, std::unique_ptr<ProgressSink> inner)
    : devices_(experiment.devices.empty() ? std::vector<Device>{experiment.device} : experiment.devices),
      settings_(std::move(settings)),
      inner_(std::move(inner)) {
  figures_.label = settings_.label;
  figures_.name = experiment.name;
  figures_.allocator = fmt::format("{} on {}", experiment.allocator.policy.name, experiment.device_names());
  if (settings_.metrics.empty()) return;
  metrics_ = std::make_unique<MetricsServer>(settings_.metrics);
  metrics_->publish(figures_);
  if (!settings_.quiet) say(fmt::format("{}metrics: {}", settings_.label, metrics_->url()));
}

RunLive::~RunLive() {
  if (screen_ == nullptr) return;
  screen_->erase();
  for (const std::string& line : kept_notes_) inner_->note(line);
}

bool RunLive::is_due(Clock::time_point now) const {
  return !has_looked_ || seconds_between(last_look_, now) >= settings_.interval_seconds;
}

void RunLive::progress(const Progress& now) {
  if (!settings_.watch) inner_->progress(now);
  const bool is_step = now.phase == "train" || now.phase == "serve";
  const Clock::time_point at = Clock::now();
  if (is_step) {
    figures_.examples += now.examples;
    step_ms_.push_back(now.step_ms);
  }
  if (is_step && first_step_ < 0) {
    first_step_ = now.step;
    first_step_at_ = at;
  }
  const bool is_last = now.steps > 0 && now.step == now.steps && (now.phase == "tested" || now.phase == "serve");
  if (now.phase == "reading data" || (!is_due(at) && !is_last)) return;
  look(now, at);
  show();
}

void RunLive::look(const Progress& now, Clock::time_point at) {
  const std::optional<double> loss = now.loss ? now.loss : figures_.now.loss;
  figures_.now = now;
  figures_.now.loss = loss;  // in a test the last step's
  figures_.seconds = seconds_between(start_, at);
  figures_.seconds_left.reset();
  if (first_step_ >= 0 && now.step > first_step_) {
    const double per_step = seconds_between(first_step_at_, at) / static_cast<double>(now.step - first_step_);
    figures_.seconds_left = per_step * static_cast<double>(now.steps - now.step);
  }
  const double passed = seconds_between(last_look_, at);
  const std::int64_t examples = figures_.examples - looked_examples_;
  if (has_looked_ && passed > 0 && examples > 0) figures_.examples_per_second = static_cast<double>(examples) / passed;
  if (!step_ms_.empty()) {
    figures_.step_ms = quantile(std::exchange(step_ms_, {}), 0.5);
  }
  if (now.phase == "train" && now.loss) {
    figures_.losses.push_back(*now.loss);
    if (figures_.losses.size() > kLosses) figures_.losses.pop_front();
  }
  figures_.devices.clear();
  for (const Device& device : devices_) {
    DeviceState& state = device_state(device);
    figures_.devices.push_back({.name = device.str(),
                                .capacity_bytes = static_cast<std::int64_t>(state.driver().properties().capacity_bytes),
                                .busy = busy_share(device),
                                .stats = state.allocator().stats()});
  }
  looked_examples_ = figures_.examples;
  last_look_ = at;
  has_looked_ = true;
}

/// The terminal is taken when there is something to show, unless a shell has put this job into the background.
bool RunLive::has_screen() {
  const pid_t job = settings_.shell_job > 0 ? settings_.shell_job : ::getpid();
  if (!had_screen_ && is_terminal(STDERR_FILENO) && is_in_foreground(job)) {
    had_screen_ = true;
    screen_ = std::make_unique<WatchScreen>(job);
  }
  return screen_ != nullptr && screen_->is_open();
}

void RunLive::show() {
  if (metrics_ != nullptr) metrics_->publish(figures_);
  if (!settings_.watch) return;
  if (has_screen()) {
    screen_->show(live_page(figures_, screen_->columns(), screen_->rows(), has_unicode()));
  } else {
    say(settings_.label + live_line(figures_));
  }
}

void RunLive::note(std::string_view line) {
  figures_.notes.emplace_back(line);
  if (figures_.notes.size() > kNotes) figures_.notes.pop_front();
  if (screen_ == nullptr || !screen_->is_open()) return inner_->note(line);
  kept_notes_.emplace_back(line);
  screen_->keep(settings_.label + std::string(line));
}

}  // namespace tenon::cli
