// The progress line and its estimate of the time left.
#include <tenon/cli/run_progress.h>

#include <unistd.h>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace tenon::cli {

namespace {

constexpr double kSilentSeconds = 2;  // shorter runs need no estimate
constexpr double kRefreshSeconds = 0.1;

bool stderr_is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

}  // namespace

std::string format_duration(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

RunProgress::RunProgress(std::string label, bool quiet)
    : label_(std::move(label)), quiet_(quiet), terminal_(stderr_is_terminal()) {}

RunProgress::~RunProgress() { erase(); }

void RunProgress::erase() {
  if (line_is_open_) fmt::print(stderr, "\r\x1b[K");
  line_is_open_ = false;
}

void RunProgress::progress(const Progress& now) {
  if (quiet_ || !terminal_) return;
  const Clock::time_point time = Clock::now();
  const double elapsed = std::chrono::duration<double>(time - start_).count();
  const double since_last = std::chrono::duration<double>(time - last_shown_).count();
  if (elapsed < kSilentSeconds || since_last < kRefreshSeconds) return;
  last_shown_ = time;
  std::string line = label_ + now.phase;
  if (now.epochs > 0) line += fmt::format("  epoch {}/{}", now.epoch, now.epochs);
  if (now.steps > 0) line += fmt::format("  step {}/{}  loss {:.4f}", now.step, now.steps, now.loss);
  if (now.step > 0 && now.steps > now.step) {
    const double per_step = elapsed / static_cast<double>(now.step);
    line += fmt::format("  {} left", format_duration(per_step * static_cast<double>(now.steps - now.step)));
  }
  fmt::print(stderr, "\r{}\x1b[K", line);
  std::fflush(stderr);
  line_is_open_ = true;
}

void RunProgress::note(std::string_view line) {
  if (quiet_) return;
  erase();
  fmt::print(stderr, "{}{}\n", label_, line);
}

}  // namespace tenon::cli
