// The whole screen of a terminal, painted by a process of its own: however this process ends, the terminal is given
// back as it was. ncurses is used there alone.
#pragma once

#include <tenon/cli/terminal/on_terminal.h>
#include <tenon/core/process/child_process.h>

#include <string>
#include <vector>

namespace tenon::cli {

class WatchScreen final : public OnTerminal {
 public:
  /// Takes the terminal that standard error is. Throws Error where the process cannot be started.
  WatchScreen();
  ~WatchScreen() override;

  /// Whether it is still there: a terminal that ncurses does not know is given back at once.
  bool is_open() const { return painter_.pid > 0; }
  /// How large a page may be.
  int columns() const;
  int rows() const;
  /// Paints these lines, in place of those before. Never waits: a page that comes too soon is left out.
  void show(const std::vector<std::string>& page);
  /// Gives the terminal back.
  void erase() override;

 private:
  ChildProcess painter_;
};

}  // namespace tenon::cli
