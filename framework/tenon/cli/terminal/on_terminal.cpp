// Who has the terminal.
#include <tenon/cli/terminal/on_terminal.h>

namespace tenon::cli {

namespace {

OnTerminal* owner = nullptr;

}  // namespace

void OnTerminal::has_terminal() {
  if (owner != nullptr && owner != this) owner->erase();
  owner = this;
}

void OnTerminal::gives_terminal_back() {
  if (owner == this) owner = nullptr;
}

void clear_terminal() {
  if (owner != nullptr) owner->erase();
}

}  // namespace tenon::cli
