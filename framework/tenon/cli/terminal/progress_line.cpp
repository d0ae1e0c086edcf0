// The progress line.
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/report/text/progress_text.h>

#include <tenon/replay/trace/long_work.h>

namespace tenon::cli {

ProgressLine::ProgressLine(bool quiet) : line_(quiet) {
  replay::listen_to_work([this](std::string_view what, double share) { show(what, share); });
}

ProgressLine::ProgressLine(std::string_view what, bool quiet) : line_(quiet), what_(what) {}

void ProgressLine::update(std::size_t done, std::size_t total) {
  if (total != 0) show(what_, static_cast<double>(done) / static_cast<double>(total));
}

ProgressLine::~ProgressLine() { replay::listen_to_work({}); }

void ProgressLine::begin(std::string_view what, double at_most_seconds) {
  what_ = what;
  begin_ = line_.seconds();
  limit_ = at_most_seconds;
}

void ProgressLine::show(std::string_view what, double share) {
  if (limit_ == 0 && what != what_) begin(what, 0);
  if (!line_.is_due()) return;
  const double spent = line_.seconds() - begin_;
  line_.show(limit_ == 0 ? progress_text(what_, share, spent) : limited_progress_text(what_, spent, limit_));
}

}  // namespace tenon::cli
