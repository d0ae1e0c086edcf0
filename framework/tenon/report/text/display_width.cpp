// Widths by utf8proc, which has Unicode's tables and needs no locale.
#include <tenon/report/text/command_line.h>
#include <tenon/report/text/display_width.h>

#include <utf8proc.h>

#include <algorithm>

namespace tenon {

namespace {

constexpr std::string_view kBreakBehind = ",;:/=._";  // where a cell may be broken besides spaces

constexpr std::string_view kComment = "   # ";  // behind a command that is to be pasted

/// One character, or one escape of a colour.
struct Character {
  std::size_t bytes = 1;
  std::size_t width = 1;
};

/// "\x1b[" … a letter: nothing else is printed here.
std::size_t escape_bytes(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end == std::string_view::npos ? text.size() : end + 1;
}

Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead >= 0x20 && lead < 0x7f) return {};
  if (const std::size_t escape = escape_bytes(text); escape != 0) return {escape, 0};
  utf8proc_int32_t point = 0;
  const utf8proc_ssize_t bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                  static_cast<utf8proc_ssize_t>(text.size()), &point);
  if (bytes <= 0) return {};
  return {static_cast<std::size_t>(bytes), static_cast<std::size_t>(utf8proc_charwidth(point))};
}

/// What of the text fits: bytes and their width.
Character prefix(std::string_view text, std::size_t width) {
  Character taken{0, 0};
  while (taken.bytes < text.size()) {
    const Character next = first_of(text.substr(taken.bytes));
    if (taken.width + next.width > width) break;
    taken.bytes += next.bytes;
    taken.width += next.width;
  }
  return taken;
}

std::string_view without_spaces_before(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether the mark at `at` is the point of a number.
bool is_decimal_point(std::string_view text, std::size_t at) {
  return at > 0 && at + 1 < text.size() && text[at] == '.' && is_digit(text[at - 1]) && is_digit(text[at + 1]);
}

/// The first place behind which a word may be broken; npos where there is none.
std::size_t first_mark(std::string_view text) {
  std::size_t mark = text.find_first_of(kBreakBehind);
  while (mark != std::string_view::npos && is_decimal_point(text, mark))
    mark = text.find_first_of(kBreakBehind, mark + 1);
  return mark;
}

/// Where a cell's line of `room` bytes is best ended.
std::size_t break_of(std::string_view text, std::size_t room) {
  if (const std::size_t space = text.rfind(' ', room); space != std::string_view::npos && space > 0) return space;
  std::size_t mark = text.find_last_of(kBreakBehind, room - 1);
  while (mark != std::string_view::npos && is_decimal_point(text, mark))
    mark = text.find_last_of(kBreakBehind, mark - 1);
  return mark != std::string_view::npos && mark + 1 > room / 3 ? mark + 1 : room;
}

std::size_t leading_spaces(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

/// `line` has no end of line.
void wrap_line(std::string_view line, std::size_t columns, std::size_t indent, std::string& out) {
  std::size_t start = 0;  // columns of `out` before what is left of the line
  while (start + display_width(line) > columns) {
    const std::size_t room = prefix(line, columns - std::min(columns, start)).bytes;
    const std::size_t first_word = leading_spaces(line);
    std::size_t space = line.rfind(' ', room);
    if (space == std::string_view::npos || space < std::max<std::size_t>(first_word, 1))
      space = line.find(' ', first_word);
    if (space == std::string_view::npos) break;  // one long word
    std::string_view head = line.substr(0, space);
    out += head.substr(0, head.find_last_not_of(' ') + 1);
    line = without_spaces_before(line.substr(space));
    if (line.empty()) return;
    out += "\n" + std::string(indent, ' ');
    start = indent;
  }
  out += line;
}

/// A comment behind it, which would break in two, stands above it.
void command(std::string_view line, std::size_t columns, std::string& out) {
  const std::size_t comment = line.find(kComment);
  if (comment != std::string_view::npos && display_width(line) > columns) {
    out += std::string(leading_spaces(line), ' ') + std::string(line.substr(comment + kComment.size() - 2)) + "\n";
    line = line.substr(0, comment);
  }
  out += continued(line, columns);
}

template <class IndentOf>
std::string wrapped_lines(std::string_view text, std::size_t columns, const IndentOf& indent_of) {
  if (columns == 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (is_command_line(line)) {
      command(line, columns, out);
    } else {
      wrap_line(line, columns, std::min(indent_of(line), columns / 2), out);
    }
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character next = first_of(text);
    width += next.width;
    text.remove_prefix(next.bytes);
  }
  return width;
}

std::vector<std::string> lines_of_cell(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (display_width(text) > width) {
    const std::size_t room = std::max(prefix(text, width).bytes, first_of(text).bytes);  // a wide character in 1 column
    const std::size_t end = break_of(text, room);
    lines.emplace_back(text.substr(0, end));
    text = without_spaces_before(text.substr(end));
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  return lines;
}

std::size_t longest_piece(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t mark = std::min(text.find(' '), first_mark(text));
    const bool is_end = mark == std::string_view::npos;
    longest = std::max(longest, display_width(is_end ? text : text.substr(0, text[mark] == ' ' ? mark : mark + 1)));
    if (is_end) break;
    text.remove_prefix(mark + 1);
  }
  return longest;
}

std::string wrapped(std::string_view text, std::size_t columns) {
  return wrapped_lines(text, columns, [](std::string_view line) { return leading_spaces(line); });
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  return wrapped_lines(text, columns, [&](std::string_view) { return indent; });
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (columns == 0 || display_width(text) <= columns) return std::string(text);
  return std::string(text.substr(0, prefix(text, columns - 1).bytes)) + "…";
}

}  // namespace tenon
