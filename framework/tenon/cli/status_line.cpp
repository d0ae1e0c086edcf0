// The line and the time left.
#include <tenon/cli/status_line.h>

#include <unistd.h>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace tenon::cli {

namespace {

constexpr double kSilentSeconds = 2;  // shorter work needs no estimate
constexpr double kRefreshSeconds = 0.1;

bool stderr_is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

}  // namespace

StatusLine::StatusLine(bool quiet) : is_on_(!quiet && stderr_is_terminal()) {}

StatusLine::~StatusLine() { erase(); }

double StatusLine::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

bool StatusLine::is_due() const {
  const double since_last = std::chrono::duration<double>(Clock::now() - last_shown_).count();
  return is_on_ && seconds() >= kSilentSeconds && since_last >= kRefreshSeconds;
}

void StatusLine::show(std::string_view text) {
  last_shown_ = Clock::now();
  fmt::print(stderr, "\r{}\x1b[K", text);
  std::fflush(stderr);
  is_shown_ = true;
}

void StatusLine::erase() {
  if (is_shown_) fmt::print(stderr, "\r\x1b[K");
  is_shown_ = false;
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

}  // namespace tenon::cli
