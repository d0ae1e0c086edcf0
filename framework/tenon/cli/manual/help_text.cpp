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

std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : path_of(*app.get_parent()) + " " + app.get_name();
}

std::string help_text(const CLI::App& app, std::size_t columns) {
  // Not App::help, which is that of the verb on the command line.
  std::string text = app.get_formatter()->make_help(&app, path_of(app), CLI::AppFormatMode::Normal);
  if (columns == 0) return text;
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (is_command_line(line)) {
      out += continued(line, columns);
    } else {
      const bool has_two_columns =
          line.size() > kHelpColumn && line[kHelpColumn - 1] == ' ' && line[kHelpColumn] != ' ';
      out += wrapped(line, columns, has_two_columns ? kHelpColumn : std::min(line.find_first_not_of(' '), line.size()));
    }
    out += '\n';
  }
  return out;
}

}  // namespace tenon::cli
