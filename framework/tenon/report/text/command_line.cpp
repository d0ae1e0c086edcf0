// Breaking commands where a shell goes on.
#include <tenon/report/text/command_line.h>
#include <tenon/report/text/display_width.h>

#include <algorithm>
#include <array>
#include <vector>

namespace tenon {

namespace {

constexpr std::array<std::string_view, 10> kPrograms = {"tenon",  "cmake", "ctest",  "apt",  "sudo",
                                                        "export", "unset", "mpirun", "srun", "torchrun"};
constexpr std::string_view kIndent = "  ", kNextIndent = "      ", kGoesOn = " \\";

std::string_view first_word(std::string_view line) {
  line.remove_prefix(kIndent.size());
  return line.substr(0, line.find(' '));
}

/// Split at spaces outside quotes.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  char quote = 0;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    const bool is_end = i == line.size();
    if (!is_end && quote == 0 && line[i] == '\\') {
      ++i;
    } else if (!is_end && (line[i] == '\'' || line[i] == '"')) {
      quote = quote == 0 ? line[i] : quote == line[i] ? '\0' : quote;
    } else if (is_end || (line[i] == ' ' && quote == 0)) {
      if (const std::size_t end = std::min(i, line.size()); end > begin)
        words.push_back(line.substr(begin, end - begin));
      begin = i + 1;
    }
  }
  return words;
}

}  // namespace

bool is_command_line(std::string_view line) {
  if (!line.starts_with(kIndent)) return false;
  return std::ranges::find(kPrograms, first_word(line)) != kPrograms.end();
}

std::string continued(std::string_view line, std::size_t columns) {
  if (columns == 0 || display_width(line) <= columns || first_word(line) == "export") return std::string(line);
  std::string out;
  std::size_t width = 0;
  for (const std::string_view word : words_of(line)) {
    const bool is_first = out.empty();
    if (!is_first && width + 1 + display_width(word) + kGoesOn.size() > columns) {
      out += std::string(kGoesOn) + "\n" + std::string(kNextIndent);
      width = kNextIndent.size();
    } else {
      out += is_first ? kIndent : " ";
      width += is_first ? kIndent.size() : 1;
    }
    out += word;
    width += display_width(word);
  }
  return out;
}

std::string shell_word(const std::string& text) {
  const bool is_plain = !text.empty() && text.find_first_not_of(
                                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789_-./:=,+@%") == std::string::npos;
  if (is_plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace tenon
