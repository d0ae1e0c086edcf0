// Starting other programs.
#include <tenon/cli/launch/command.h>

#include <tenon/core/error.h>
#include <tenon/core/process/child_process.h>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

namespace tenon::cli {

CommandResult output_of(const std::vector<std::string>& words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(fmt::format("no pipe: {}", std::strerror(errno)));
  pid_t child = 0;
  try {
    child = spawn(words, {.searches_path = true, .output = ends[1], .error = ends[1], .variables = {}});
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  CommandResult result;
  std::array<char, 4096> bytes{};
  while (true) {
    const ssize_t count = ::read(ends[0], bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    result.output.append(bytes.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  result.ending = ending_of(wait_for_end(child));
  return result;
}

pid_t start_command(const std::vector<std::string>& words) {
  return spawn(
      words,
      {.searches_path = true, .has_own_group = true, .output = STDERR_FILENO, .error = STDERR_FILENO, .variables = {}});
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace tenon::cli
