// The progress line.
#include <tenon/cli/progress_line.h>

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>

namespace tenon::cli {

namespace {
constexpr double kQuietSeconds = 2.0;
}

ProgressLine::ProgressLine(std::string what, bool quiet)
    : what_(std::move(what)),
      is_on_(!quiet && ::isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()) {}

ProgressLine::~ProgressLine() {
  if (is_shown_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressLine::update(std::size_t done, std::size_t total) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (!is_on_ || done == 0 || done > total || seconds < kQuietSeconds) return;
  const double left = seconds / static_cast<double>(done) * static_cast<double>(total - done);
  fmt::print(stderr, "\r\x1b[K{}: {} of {}, {:.0f} s left", what_, done, total, left);
  std::fflush(stderr);
  is_shown_ = true;
}

}  // namespace tenon::cli
