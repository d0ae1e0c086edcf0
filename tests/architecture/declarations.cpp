// Reading declarations: the text is cut into statements, and braces tell in which scope each stands.
#include "architecture/declarations.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace tenon::test {
namespace {

struct Scope {
  enum Kind { kNamespace, kClass, kHidden } kind;
  std::string name;
  bool is_public = true;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The position of the parenthesis that opens the parameters; npos where the statement declares no function.
std::size_t parameters_of(const std::string& statement) {
  int angles = 0;
  for (std::size_t i = 0; i < statement.size(); ++i) {
    const char c = statement[i];
    if (c == '<') ++angles;
    if (c == '>' && angles > 0) --angles;
    if (c == '=' && angles == 0) return std::string::npos;  // a variable and its value
    if (c == '(' && angles == 0) return i;
  }
  return std::string::npos;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Declaration> read() {
    while (at_ < text_.size()) step();
    return std::move(found_);
  }

 private:
  void step() {
    if (text_[at_] == '#' && begins_line()) return skip_directive();
    if (text_.substr(at_, 2) == "//") return comment();
    const char c = text_[at_];
    if (c == '"' || (c == '\'' && (at_ == 0 || !is_word(text_[at_ - 1])))) return quoted(c);
    if (c == '\n') {
      ++line_;
      blank_ = blank_ && statement_.empty();
      if (statement_.empty() && blank_) docstring_ = false;
      blank_ = true;
    } else if (!std::isspace(static_cast<unsigned char>(c))) {
      blank_ = false;
    }
    if (c == '(') ++parentheses_;
    if (c == ')') --parentheses_;
    if (parentheses_ == 0) {
      if (c == ';') return end_of_statement();
      if (c == '{') return open();
      if (c == '}') return close();
      if (c == ':' && access_label()) return;
    }
    append(c);
  }

  void append(char c) {
    ++at_;
    const bool space = std::isspace(static_cast<unsigned char>(c));
    if (statement_.empty()) {
      if (space) return;
      begins_ = line_;
    }
    if (space && statement_.back() == ' ') return;
    statement_ += space ? ' ' : c;
  }

  bool begins_line() const {
    const auto before = text_.substr(0, at_).find_last_not_of(" \t");
    return before == std::string_view::npos || text_[before] == '\n';
  }

  void skip_directive() {
    reset();
    for (; at_ < text_.size() && (text_[at_] != '\n' || text_[at_ - 1] == '\\'); ++at_) line_ += text_[at_] == '\n';
  }

  void comment() {
    const bool documents = text_.substr(at_, 3) == "///";
    const bool behind = text_.substr(at_, 4) == "///<";
    const auto end = std::min(text_.find('\n', at_), text_.size());
    at_ = end;
    blank_ = false;
    if (behind) {
      if (!found_.empty() && found_.back().line <= line_ && line_ - found_.back().line < 4) {
        found_.back().has_docstring = true;
      }
    } else if (documents && statement_.empty()) {
      docstring_ = true;
    }
  }

  void quoted(char quote) {
    append(quote);
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\') append(text_[at_]);
      append(text_[at_]);
    }
    if (at_ < text_.size()) append(quote);
  }

  bool access_label() {
    for (const std::string_view label : {"public", "protected", "private"}) {
      if (statement_ != label) continue;
      if (!scopes_.empty()) scopes_.back().is_public = label == "public";
      ++at_;
      reset();
      return true;
    }
    return false;
  }

  void end_of_statement() {
    ++at_;
    note();
    reset();
  }

  void open() {
    static const std::regex type(R"(^(template ?<.*> ?)?(class|struct|union)\b[^(]*?(\w+)( final)?( ?:[^:].*)?$)");
    std::smatch match;
    std::string head = statement_;
    head = std::regex_replace(head, std::regex(R"(\bTENON_(EXPORT|API)\b ?|\[\[\w+\]\] ?)"), "");
    while (!head.empty() && head.back() == ' ') head.pop_back();
    if (head.starts_with("namespace") || head.starts_with("inline namespace")) {
      const std::string name = head.substr(head.find("namespace") + 9);
      const bool hidden = name.empty() || name.find("detail") != std::string::npos;
      push({hidden ? Scope::kHidden : Scope::kNamespace, name.empty() ? name : name.substr(1)});
    } else if (std::regex_match(head, match, type) && parameters_of(match[3].str()) == std::string::npos &&
               head.find("operator") == std::string::npos) {
      push({Scope::kClass, match[3], match[2] != "class"});
    } else if (head.find("operator") != std::string::npos) {
      skip_braces(true);
    } else if (parameters_of(head) != std::string::npos) {
      if (ends_in_initializer(head)) return skip_braces(false);
      const std::size_t before = found_.size();
      const std::size_t body = at_;
      note();
      skip_braces(true);
      if (found_.size() > before) found_.back().alias_of = called_by(text_.substr(body, at_ - body));
    } else {
      skip_braces(false);  // an enumeration, or the value of a variable
    }
  }

  /// `: a_{1} {`: the brace belongs to a member's value, not to the body.
  static bool ends_in_initializer(const std::string& head) {
    static const std::regex members(R"(\) ?:[^:].*\w$)");
    return std::regex_search(head, members) && !head.ends_with("const") && !head.ends_with("noexcept");
  }

  /// The function that `{ return f(…); }` calls; empty for any other body.
  static std::string called_by(std::string_view body) {
    static const std::regex call(R"(^\{\s*return (?:self\.)?(\w+)\(([^;]*)\);\s*\}$)");
    std::match_results<std::string_view::const_iterator> match;
    if (!std::regex_match(body.begin(), body.end(), match, call)) return "";
    int depth = 0;
    for (const char c : match[2].str()) {
      depth += c == '(';
      depth -= c == ')';
      if (depth < 0) return "";  // `f(a).g(b)`
    }
    return match[1];
  }

  void push(Scope scope) {
    ++at_;
    scopes_.push_back(std::move(scope));
    reset();
  }

  void skip_braces(bool ends_statement) {
    int depth = 0;
    do {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (c == '"' || (c == '\'' && !is_word(text_[at_ - 1]))) {
        for (++at_; at_ < text_.size() && text_[at_] != c; ++at_) at_ += text_[at_] == '\\';
      }
      depth += c == '{';
      depth -= c == '}';
      ++at_;
    } while (at_ < text_.size() && depth > 0);
    if (ends_statement) reset();
  }

  void close() {
    ++at_;
    if (!scopes_.empty()) scopes_.pop_back();
    reset();
  }

  void reset() {
    statement_.clear();
    docstring_ = false;
    blank_ = false;
  }

  bool is_visible() const {
    return std::all_of(scopes_.begin(), scopes_.end(),
                       [](const Scope& scope) { return scope.kind != Scope::kHidden && scope.is_public; });
  }

  /// `template <…> requires(…) Result f(…)`: the constraint has parentheses of its own.
  void drop_constraint() {
    static const std::regex constraint(R"(\brequires ?\()");
    std::smatch match;
    if (!std::regex_search(statement_, match, constraint)) return;
    const std::size_t begin = static_cast<std::size_t>(match.position());
    std::size_t end = begin + static_cast<std::size_t>(match.length());
    for (int depth = 1; end < statement_.size() && depth > 0; ++end) {
      depth += statement_[end] == '(';
      depth -= statement_[end] == ')';
    }
    statement_.erase(begin, end - begin);
  }

  void note() {
    drop_constraint();
    const std::size_t end = parameters_of(statement_);
    if (end == std::string::npos || !is_visible()) return;
    static const std::regex not_a_function(
        R"(^(template ?<.*> ?)?(using|typedef|friend|static_assert|extern template|return|enum)\b|\boperator\b|\boverride\b|\bTENON_API friend\b|= ?(default|delete)$)");
    if (std::regex_search(statement_, not_a_function)) return;
    std::size_t stop = end;
    while (stop > 0 && statement_[stop - 1] == ' ') --stop;
    std::size_t begin = stop;
    while (begin > 0 && is_word(statement_[begin - 1])) --begin;
    const std::string name = statement_.substr(begin, stop - begin);
    const bool macro = std::none_of(name.begin(), name.end(), [](char c) { return std::islower((unsigned char)c); });
    if (name.empty() || macro || (begin > 0 && statement_[begin - 1] == '~')) return;
    if (!scopes_.empty() && scopes_.back().kind == Scope::kClass && scopes_.back().name == name) return;
    std::string scope;
    for (const Scope& part : scopes_) scope += (scope.empty() ? "" : "::") + part.name;
    found_.push_back({scope, name, begins_, docstring_, ""});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t begins_ = 1;
  int parentheses_ = 0;
  bool docstring_ = false;
  bool blank_ = false;
  std::string statement_;
  std::vector<Scope> scopes_;
  std::vector<Declaration> found_;
};

}  // namespace

std::vector<Declaration> declared_functions(std::string_view header) { return Reader(header).read(); }

}  // namespace tenon::test
