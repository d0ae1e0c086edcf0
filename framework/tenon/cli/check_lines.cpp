// Three layouts: as wide as it is, a column of remarks, remarks below.
#include <tenon/cli/check_lines.h>

#include <tenon/report/text/display_width.h>

#include <fmt/format.h>

namespace tenon::cli {

namespace {
constexpr std::size_t kRemarksFrom = 43;    // where CheckResult::line() begins them
constexpr std::size_t kLeastColumns = 100;  // with fewer, a column of them is a ribbon
}  // namespace

std::string lines_of(const conformance::CheckResult& check, std::size_t columns) {
  if (columns == 0) return check.line();
  const std::string line = check.line();
  const std::size_t end = line.find('\n') + 1;
  if (columns >= kLeastColumns)
    return wrapped(line.substr(0, end), columns, kRemarksFrom) + wrapped(line.substr(end), columns);
  std::string text = fmt::format("  {:<6}  {}\n", check.state(), check.name);
  if (!check.passed()) text += fmt::format("    {}\n", check.remark());
  return wrapped(text + line.substr(end), columns);
}

}  // namespace tenon::cli
