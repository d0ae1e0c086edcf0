// A measure of functions: where the outermost braces that are not namespace, class or table begin and end. It reads
// text, not C++: comments, literals and preprocessor lines are blanked first.
#pragma once

#include <cstddef>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::test {

inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Spaces in place of comments, literals and preprocessor lines; every line stays where it is.
inline std::string blanked(std::string text) {
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
      if (text[i] != '\n') text[i] = ' ';
  };
  const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  const auto end_of_line = [&](std::size_t i) {  // of the last line, where backslashes join several
    std::size_t end = text.find('\n', i);
    while (end != std::string::npos && end > 0 && text[end - 1] == '\\') end = text.find('\n', end + 1);
    return end == std::string::npos ? text.size() : end;
  };
  bool line_is_empty = true;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    std::size_t end = i + 1;
    if (c == '/' && at(i + 1) == '/') {
      end = end_of_line(i);
    } else if (c == '/' && at(i + 1) == '*') {
      end = text.find("*/", i + 2);
      end = end == std::string::npos ? text.size() : end + 2;
    } else if (c == '#' && line_is_empty) {
      end = end_of_line(i);
    } else if (c == 'R' && at(i + 1) == '"') {
      const std::size_t open = text.find('(', i);
      const std::string close = open == std::string::npos ? "" : ")" + text.substr(i + 2, open - i - 2) + "\"";
      end = close.empty() ? std::string::npos : text.find(close, open);
      end = end == std::string::npos ? text.size() : end + close.size();
    } else if (c == '"' || (c == '\'' && (i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0))) {
      while (end < text.size() && text[end] != c && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else {
      line_is_empty = c == '\n' || (line_is_empty && (c == ' ' || c == '\t'));
      ++i;
      continue;
    }
    blank(i, end);
    line_is_empty = false;
    i = end;
  }
  return text;
}

/// Lines are counted from 1, from the opening brace's to the closing one's.
struct FunctionBody {
  std::size_t first_line = 0;
  std::size_t last_line = 0;
  std::string head;  ///< what stands before the opening brace, blanked
  std::string body;  ///< from brace to brace, blanked
};

inline std::vector<FunctionBody> functions_of(const std::string& source) {
  static const std::regex scope(
      R"(^\s*(?:(?:inline|typedef|static|const|constexpr)\s+)*(?:namespace|class|struct|union|enum|extern)\b)");
  static const std::regex templates(R"(^\s*template\s*<[^{}]*>(?=\s*(?:class|struct|union)\b))");
  const std::string text = blanked(source);
  std::vector<FunctionBody> functions;
  std::size_t depth = 0;  // of braces inside a function or table; those of scopes are not counted
  bool is_function = false;
  std::size_t line = 1, first_line = 0, head = 0, open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == '{') {
      if (depth == 0) {
        const std::string before = std::regex_replace(text.substr(head, i - head), templates, "");
        const auto last = before.find_last_not_of(" \t\n");
        const bool is_table = last != std::string::npos && before[last] == '=';
        const bool is_scope = std::regex_search(before, scope) && before.find(") {") == std::string::npos;
        if (is_scope && !is_table) {
          head = i + 1;
          continue;
        }
        is_function = !is_table && before.find('(') != std::string::npos;
        first_line = line;
        open = i;
      }
      ++depth;
    } else if (c == '}' && depth > 0) {
      if (--depth == 0) {
        if (is_function) {
          functions.push_back({first_line, line, text.substr(head, open - head), text.substr(open, i + 1 - open)});
        }
        head = i + 1;
      }
    } else if ((c == ';' || c == '}') && depth == 0) {
      head = i + 1;
    }
  }
  return functions;
}

}  // namespace tenon::test
