// One line on stderr that is rewritten while something takes its time: on a terminal only, and only for work of more
// than two seconds. By hand: the libraries for it are not packaged by Debian, and it is a carriage return.
#pragma once

#include <tenon/report/text/progress_text.h>

#include <chrono>
#include <string>
#include <string_view>

namespace tenon::cli {

class StatusLine {
 public:
  /// quiet: never shown.
  explicit StatusLine(bool quiet);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Seconds since the beginning.
  double seconds() const;
  /// Whether it is time to show something new.
  bool is_due() const;
  void show(std::string_view text);
  void erase();

 private:
  using Clock = std::chrono::steady_clock;
  bool is_on_;
  bool is_shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_shown_{};
};

/// Takes the line away that is shown, if one is: for whoever writes to the terminal.
void erase_status_line();

}  // namespace tenon::cli
