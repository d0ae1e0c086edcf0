// Breaking the lines of a help below their second column.
#include <tenon/cli/manual/help_text.h>

#include <tenon/report/text/command_line.h>
#include <tenon/report/text/display_width.h>

#include <algorithm>
#include <sstream>

namespace tenon::cli {

namespace {

constexpr std::size_t kHelpColumn = 30;  // where CLI11 begins what an option is for

}  // namespace

std::string help_text(Verb verb, std::size_t columns) {
  std::string text = verb.help();
  if (columns == 0) return text;
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (is_command_line(line)) {
      out += continued(line, columns);
    } else {
      // A sentence may have a blank there too, and begins at the margin.
      const bool has_two_columns = line.starts_with("  ") && line.size() > kHelpColumn &&
                                   line[kHelpColumn - 1] == ' ' && line[kHelpColumn] != ' ';
      out += wrapped(line, columns, has_two_columns ? kHelpColumn : std::min(line.find_first_not_of(' '), line.size()));
    }
    out += '\n';
  }
  return out;
}

}  // namespace tenon::cli
