// A progress line on a terminal for the long work of replays, which says how far it is. The line has an estimate of
// what is left, and is there as long as the object.
#pragma once

#include <tenon/cli/terminal/status_line.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon::cli {

class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  /// Of work that the caller counts, and of nothing else: "measuring".
  ProgressLine(std::string_view what, bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(std::size_t done, std::size_t total);
  /// From now on it is about one work, which ends after so many seconds at the latest.
  void begin(std::string_view what, double at_most_seconds);

 private:
  void show(std::string_view what, double share);

  StatusLine line_;
  std::string what_;  ///< the estimate is of this work alone
  double begin_ = 0;  ///< of it, in seconds of the line
  double limit_ = 0;  ///< 0: as long as it takes
};

}  // namespace tenon::cli
