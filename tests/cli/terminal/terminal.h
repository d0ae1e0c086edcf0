// Runs the built program on a pseudo-terminal of some width, as a user sees it.
#pragma once

#include "cli/program.h"

#include <pty.h>
#include <unistd.h>

#include <locale.h>
#include <algorithm>
#include <cstdlib>
#include <cwchar>
#include <functional>

namespace tenon::test {

/// What stood on the terminal: lines of output and of messages as they came, without the escapes of colours.
struct Shown {
  int code = -1;
  std::string bytes;               ///< all that the program wrote
  std::vector<std::string> lines;  ///< a line that was rewritten is there as often as it was written
};

/// The text without "\x1b[…m" and "\x1b[K".
inline std::string without_escapes(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      i = text.find_first_not_of("0123456789;", i + 2);
      if (i == std::string::npos) break;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Columns by the tables of the C library, and not by those that the program uses.
inline int columns_of(const std::string& line) {
  static const locale_t kUtf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  const locale_t before = ::uselocale(kUtf8);
  std::mbstate_t state{};
  int columns = 0;
  for (std::size_t at = 0; at < line.size();) {
    wchar_t point = 0;
    const std::size_t bytes = std::mbrtowc(&point, line.data() + at, line.size() - at, &state);
    const bool is_valid = bytes != 0 && bytes <= line.size();
    columns += is_valid ? std::max(0, ::wcwidth(point)) : 1;
    at += is_valid ? bytes : 1;
  }
  ::uselocale(before);
  return columns;
}

/// `tenon WORDS…` in `folder` on a terminal of `columns`, with `variables` on top of our environment. It gets `signal`
/// once `is_enough` says so of what it has written.
inline Shown tenon_on_terminal(const Folder& folder, const std::vector<std::string>& words, unsigned short columns,
                               const std::map<std::string, std::string>& variables = {},
                               const std::function<bool(const std::string&)>& is_enough = {}, int signal = SIGTERM) {
  const winsize size{.ws_row = 50, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    for (const char* name : {"COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"}) ::unsetenv(name);
    ::setenv("TERM", "xterm-256color", 1);
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<std::string> line = {TENON_PROGRAM};
    line.insert(line.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : line) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (::chdir(folder.path().c_str()) == 0) ::execv(TENON_PROGRAM, arguments.data());
    ::_exit(127);
  }
  Shown shown;
  EXPECT_GT(child, 0);
  char buffer[4096];
  bool is_ended = false;
  for (ssize_t got = 0; (got = ::read(terminal, buffer, sizeof buffer)) > 0;) {  // EIO when the program has ended
    shown.bytes.append(buffer, static_cast<std::size_t>(got));
    if (is_ended || !is_enough || !is_enough(shown.bytes)) continue;
    ::kill(child, signal);
    is_ended = true;
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(terminal);
  shown.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::string line;
  for (const char c : without_escapes(shown.bytes)) {
    if (c == '\n' || c == '\r') {
      if (!line.empty() || c == '\n') shown.lines.push_back(line);
      line.clear();
    } else {
      line += c;
    }
  }
  if (!line.empty()) shown.lines.push_back(line);
  return shown;
}

}  // namespace tenon::test
