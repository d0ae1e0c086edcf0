// The whole screen of a terminal, painted by a process of its own: however this process ends, the terminal is given
// back as it was. ncurses is used there alone.
#pragma once

#include <tenon/cli/terminal/on_terminal.h>
#include <tenon/core/process/child_process.h>

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

/// Whether the terminal that standard error is belongs to the process group of `job` now, and not to the shell or to
/// another job.
bool is_in_foreground(pid_t job);

class WatchScreen final : public OnTerminal {
 public:
  /// Takes the terminal that standard error is, and paints while `job` is in the foreground. Throws Error where the
  /// process cannot be started.
  explicit WatchScreen(pid_t job);
  ~WatchScreen() override;

  /// Whether it is still there: a terminal that ncurses does not know is given back at once.
  bool is_open() const { return painter_.pid > 0; }
  /// How large a page may be.
  int columns() const;
  int rows() const;
  /// Paints these lines, in place of those before. Never waits: a page that comes too soon is left out.
  void show(const std::vector<std::string>& page);
  /// A line that is written where the screen was, should this process end without erase().
  void keep(std::string_view line);
  /// Gives the terminal back.
  void erase() override;

 private:
  bool send(char kind, std::string_view text, bool may_wait);

  ChildProcess painter_;
};

}  // namespace tenon::cli
