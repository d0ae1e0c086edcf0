// Three layouts: as wide as it is, a column of remarks, remarks below.
#include <tenon/cli/check_lines.h>

#include <tenon/report/text/display_width.h>

#include <fmt/format.h>

namespace tenon::cli {

namespace {
constexpr std::size_t kRemarksFrom = 43;    // where CheckResult::line() begins them
constexpr std::size_t kLeastColumns = 100;  // with fewer, a column of them is a ribbon
}  // namespace

static std::string plain_lines_of(const conformance::CheckResult& check, std::size_t columns) {
  if (columns == 0) return check.line();
  const std::string line = check.line();
  const std::size_t end = line.find('\n') + 1;
  if (columns >= kLeastColumns)
    return wrapped(line.substr(0, end), columns, kRemarksFrom) + wrapped(line.substr(end), columns);
  std::string text = fmt::format("  {:<6}  {}\n", check.state(), check.name);
  if (!check.passed()) text += fmt::format("    {}\n", check.remark());
  return wrapped(text + line.substr(end), columns);
}

std::string lines_of(const conformance::CheckResult& check, const Screen& screen) {
  std::string text = plain_lines_of(check, screen.columns);
  const Tone tone = check.passed() ? Tone::kGood : check.is_first_of_its_cause() ? Tone::kBad : Tone::kWarning;
  return text.replace(text.find(check.state()), check.state().size(), toned(check.state(), tone, screen));
}

}  // namespace tenon::cli
