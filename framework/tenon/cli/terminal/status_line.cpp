// The line and the time left.
#include <tenon/cli/terminal/status_line.h>
#include <tenon/cli/terminal/terminal.h>
#include <tenon/core/seconds_since.h>
#include <tenon/report/text/display_width.h>

#include <unistd.h>

#include <fmt/format.h>

#include <cstdio>

namespace tenon::cli {

namespace {

constexpr double kSilentSeconds = 2;  // shorter work needs no estimate
constexpr double kRefreshSeconds = 0.1;

}  // namespace

StatusLine::StatusLine(bool quiet) : is_on_(!quiet && is_terminal(STDERR_FILENO)) {}

StatusLine::~StatusLine() { erase(); }

double StatusLine::seconds() const { return seconds_since(start_); }

bool StatusLine::is_due() const {
  const double since_last = seconds_since(last_shown_);
  return is_on_ && seconds() >= kSilentSeconds && since_last >= kRefreshSeconds;
}

void StatusLine::show(std::string_view text) {
  has_terminal();
  last_shown_ = Clock::now();
  const std::size_t columns = screen_of(STDERR_FILENO).columns;
  fmt::print(stderr, "\r{}\x1b[K", shortened(text, columns == 0 ? 0 : columns - 1));  // a full line would wrap
  std::fflush(stderr);
  is_shown_ = true;
}

void StatusLine::erase() {
  if (is_shown_) fmt::print(stderr, "\r\x1b[K");
  is_shown_ = false;
  gives_terminal_back();
}

}  // namespace tenon::cli
