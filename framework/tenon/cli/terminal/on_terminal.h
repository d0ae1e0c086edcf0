// What has the terminal for itself, a line of it or all, and is taken away before anybody else writes there.
#pragma once

namespace tenon::cli {

/// One at a time has it: there is one terminal.
class OnTerminal {
 public:
  OnTerminal() = default;
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;
  virtual ~OnTerminal() = default;
  /// Leaves the terminal as it was.
  virtual void erase() = 0;

 protected:
  void has_terminal();
  void gives_terminal_back();
};

/// Takes away what is shown, if something is: for whoever writes to the terminal.
void clear_terminal();

}  // namespace tenon::cli
