// One line on stderr that is rewritten while something takes its time: on a terminal only, and only for work of more
// than two seconds. By hand: the libraries for it are not packaged by Debian, and it is a carriage return.
#pragma once

#include <tenon/cli/terminal/on_terminal.h>

#include <chrono>
#include <string>
#include <string_view>

namespace tenon::cli {

class StatusLine final : public OnTerminal {
 public:
  /// quiet: never shown.
  explicit StatusLine(bool quiet);
  ~StatusLine() override;

  /// Seconds since the beginning.
  double seconds() const;
  /// Whether it is time to show something new.
  bool is_due() const;
  void show(std::string_view text);
  void erase() override;

 private:
  using Clock = std::chrono::steady_clock;
  bool is_on_;
  bool is_shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_shown_{};
};

}  // namespace tenon::cli
