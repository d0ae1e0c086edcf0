// The painter gets pages as messages, one after the other, and ends with the last holder of the other end.
#include <tenon/cli/live/watch_screen.h>
#include <tenon/cli/terminal/terminal.h>

#define NCURSES_NOMACROS  // erase and others are names of ours too
#include <curses.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <string_view>

namespace tenon::cli {

namespace {

constexpr std::size_t kLargestPage = 1 << 16;

winsize terminal_size() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    size = {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  return size;
}

void paint_page(std::string_view page) {
  if (const winsize size = terminal_size(); LINES != size.ws_row || COLS != size.ws_col)
    ::resizeterm(size.ws_row, size.ws_col);
  ::erase();
  for (int row = 0; !page.empty() && row < LINES; ++row) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    if (row == 0) ::attron(A_BOLD);
    ::mvaddnstr(row, 0, page.data(), static_cast<int>(end));
    if (row == 0) ::attroff(A_BOLD);
    page.remove_prefix(std::min(end + 1, page.size()));
  }
  ::redrawwin(stdscr);  // others may have written to the terminal meanwhile
  ::refresh();
}

/// Ctrl-C is for the run, which ends this.
void paint(int peer) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_IGN);
  std::setlocale(LC_ALL, "");
  SCREEN* const screen = ::newterm(nullptr, stderr, stdin);
  if (screen == nullptr) return;
  ::curs_set(0);
  std::string page(kLargestPage, '\0');
  while (true) {
    const ssize_t got = ::recv(peer, page.data(), page.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    paint_page(std::string_view(page).substr(0, static_cast<std::size_t>(got)));
  }
  ::endwin();
}

}  // namespace

WatchScreen::WatchScreen() : painter_(fork_to_talk("the screen of --watch", paint)) { has_terminal(); }

WatchScreen::~WatchScreen() { erase(); }

int WatchScreen::columns() const { return terminal_size().ws_col; }
int WatchScreen::rows() const { return terminal_size().ws_row; }

void WatchScreen::show(const std::vector<std::string>& page) {
  if (!is_open()) return;
  std::string text;
  for (const std::string& line : page) text += line + "\n";
  text.resize(std::min(text.size(), kLargestPage));
  if (text.empty()) return;
  const ssize_t sent = ::send(painter_.answer, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS) erase();
}

void WatchScreen::erase() {
  if (!is_open()) return;
  ::close(painter_.answer);
  wait_for_end(painter_.pid);
  painter_ = {};
  gives_terminal_back();
}

}  // namespace tenon::cli
