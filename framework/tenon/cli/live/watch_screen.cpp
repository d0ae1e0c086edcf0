// The painter gets messages, one after the other: pages, lines to keep, the end. It ends with the last holder of the
// other end, too, and then writes what it has kept.
#include <tenon/cli/live/watch_screen.h>
#include <tenon/cli/terminal/terminal.h>

#define NCURSES_NOMACROS  // erase and others are names of ours too
#include <curses.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>

namespace tenon::cli {

namespace {

constexpr std::size_t kLargestPage = 1 << 16;
enum Kind : char { kPage = 'p', kKept = 'k', kEnd = 'e' };

void paint_page(std::string_view page) {
  if (const TerminalSize size = size_of_terminal(STDERR_FILENO); LINES != size.rows || COLS != size.columns)
    ::resizeterm(size.rows, size.columns);
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

volatile std::sig_atomic_t is_to_stop = 0;

/// Ctrl-Z: the shell gets the terminal as it was. The next page is painted when it is ours again.
void stop_where_asked() {
  if (is_to_stop == 0) return;
  is_to_stop = 0;
  ::endwin();
  ::raise(SIGSTOP);
}

void take_signals() {
  // Ctrl-C is for the run, which ends this. A cell of a sweep is no foreground group, but its sweep is.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTTOU}) ::signal(number, SIG_IGN);
  struct sigaction stops {};
  stops.sa_handler = [](int) { is_to_stop = 1; };  // without SA_RESTART: it wakes the painter
  ::sigaction(SIGTSTP, &stops, nullptr);
}

/// Until the end; the lines to keep where that was not said.
std::string paint_until_end(int peer, pid_t job) {
  std::string message(kLargestPage, '\0'), kept;
  while (true) {
    const ssize_t got = ::recv(peer, message.data(), message.size(), 0);
    stop_where_asked();
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return kept;
    const std::string_view text(message.data() + 1, static_cast<std::size_t>(got) - 1);
    if (message[0] == kEnd) return "";
    if (message[0] == kKept) kept.append(text).append("\n");
    if (message[0] != kPage) continue;
    if (is_in_foreground(job)) {
      paint_page(text);
    } else if (!::isendwin()) {
      ::endwin();
    }
  }
}

void paint(int peer, pid_t job) {
  take_signals();
  std::setlocale(LC_ALL, "");
  SCREEN* const screen = ::newterm(nullptr, stderr, stdin);
  if (screen == nullptr) return;
  ::curs_set(0);
  const std::string kept = paint_until_end(peer, job);
  if (!::isendwin()) ::endwin();
  std::fputs(kept.c_str(), stderr);
}

}  // namespace

bool is_in_foreground(pid_t job) {
  const pid_t group = ::getpgid(job);
  return group > 0 && ::tcgetpgrp(STDERR_FILENO) == group;
}

WatchScreen::WatchScreen(pid_t job)
    : painter_(fork_to_talk("the screen of --watch", [job](int peer) { paint(peer, job); })) {
  has_terminal();
}

WatchScreen::~WatchScreen() { erase(); }

int WatchScreen::columns() const { return size_of_terminal(STDERR_FILENO).columns; }
int WatchScreen::rows() const { return size_of_terminal(STDERR_FILENO).rows; }

bool WatchScreen::send(char kind, std::string_view text, bool may_wait) {
  std::string message = kind + std::string(text);
  message.resize(std::min(message.size(), kLargestPage));
  const int flags = MSG_NOSIGNAL | (may_wait ? 0 : MSG_DONTWAIT);
  return ::send(painter_.answer, message.data(), message.size(), flags) >= 0 || errno == EAGAIN || errno == EINTR ||
         errno == ENOBUFS;
}

void WatchScreen::show(const std::vector<std::string>& page) {
  if (!is_open()) return;
  std::string text;
  for (const std::string& line : page) text += line + "\n";
  if (!send(kPage, text, /*may_wait=*/false)) erase();
}

void WatchScreen::keep(std::string_view line) {
  if (is_open() && !send(kKept, line, /*may_wait=*/false)) erase();
}

void WatchScreen::erase() {
  if (!is_open()) return;
  send(kEnd, "", /*may_wait=*/true);
  ::close(painter_.answer);
  wait_for_end(painter_.pid);
  painter_ = {};
  gives_terminal_back();
}

}  // namespace tenon::cli
