// The progress line.
#include <tenon/cli/progress_line.h>

#include <fmt/format.h>

namespace tenon::cli {

void ProgressLine::update(std::size_t done, std::size_t total) {
  if (done == 0 || done > total || !line_.is_due()) return;
  const double left = line_.seconds() / static_cast<double>(done) * static_cast<double>(total - done);
  line_.show(fmt::format("{}: {} of {}, {} left", what_, done, total, format_duration(left)));
}

}  // namespace tenon::cli
