// Reading declarations: the text is cut into statements, and braces tell in which scope each stands. What an invocation
// of a macro or an included row file stands for takes its place in the text, and is read like the rest.
#include "architecture/declarations.h"

#include "architecture/macros.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>
#include <set>
#include <utility>

namespace tenon::test {
namespace {

struct Scope {
  enum Kind { kNamespace, kClass, kHidden } kind;
  std::string name;
  bool is_public = true;
};

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

/// A part of the text that came from elsewhere: the expansion of a macro, or an included file.
struct Inserted {
  std::size_t behind;                    ///< the characters that follow it
  std::string macro;                     ///< its name; empty for a file
  std::optional<std::string> docstring;  ///< what stands above the invocation
  std::size_t first;                     ///< the first declaration found in it
  std::size_t line = 0;                  ///< of a file: where reading goes on
  std::string included_from;             ///< of a file: where that is
};

class Reader {
 public:
  Reader(std::string_view text, const Includes& includes) : text_(text), includes_(includes) {}

  std::vector<Declaration> read() {
    while (at_ < text_.size()) step();
    return std::move(found_);
  }

 private:
  void step() {
    while (!inserted_.empty() && text_.size() - at_ <= inserted_.back().behind) end_of_inserted();
    if (at_ == text_.size()) return;
    if (text_[at_] == '#' && begins_line()) return directive();
    if (at("//")) return comment();
    if (at("/*")) return block_comment();
    if (expand_macro()) return;
    const char c = text_[at_];
    if (c == '"' || (c == '\'' && (at_ == 0 || !is_word(text_[at_ - 1])))) return quoted(c);
    if (c == '\n') {
      ++line_;
      blank_ = blank_ && statement_.empty();
      if (statement_.empty() && blank_) docstring_.reset();
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
    const auto before = at_ == 0 ? std::string::npos : text_.find_last_not_of(" \t", at_ - 1);
    return before == std::string::npos || text_[before] == '\n';
  }

  bool at(std::string_view token) const { return std::string_view(text_).substr(at_, token.size()) == token; }

  void directive() {
    reset();
    const std::size_t begin = at_;
    for (; at_ < text_.size() && (text_[at_] != '\n' || text_[at_ - 1] == '\\'); ++at_) line_ += text_[at_] == '\n';
    const std::string line = text_.substr(begin, at_ - begin);
    macros_.read_directive(line);
    const std::string path = included_path(line);
    if (path.ends_with(".inl")) {
      insert(includes_(path), {text_.size() - at_, "", std::nullopt, found_.size(), line_, file_});
      line_ = 1;
      file_ = path;
    } else {
      read_macros(path);
    }
  }

  /// "tenon/tensor/tensor.h" of `#include <tenon/tensor/tensor.h>`; empty for what is not of the project.
  static std::string included_path(const std::string& line) {
    static const std::regex include(R"(^\s*#\s*include <(tenon/[^>]+)>)");
    std::smatch match;
    return std::regex_search(line, match, include) ? match[1].str() : "";
  }

  /// The macros that an included header leaves behind.
  void read_macros(const std::string& path) {
    if (path.empty() || !includes_ || !seen_.insert(path).second) return;
    static const std::regex directive(R"((^|\n)[ \t]*#(\\\n|[^\n])*)");
    const std::string text = includes_(path);
    for (std::sregex_iterator it(text.begin(), text.end(), directive), end; it != end; ++it) {
      macros_.read_directive(it->str());
      read_macros(included_path(it->str()));
    }
  }

  void insert(const std::string& text, Inserted inserted) {
    text_.insert(at_, text);
    inserted_.push_back(std::move(inserted));
  }

  bool expand_macro() {
    if (!is_word(text_[at_]) || (at_ > 0 && is_word(text_[at_ - 1]))) return false;
    const auto expansion = macros_.expand(std::string_view(text_).substr(at_));
    if (!expansion) return false;
    for (const Inserted& open : inserted_) {
      if (open.macro == expansion->name) return false;
    }
    std::optional<std::string> documented;
    if (statement_.empty()) std::swap(documented, docstring_);
    // The lines of the invocation are counted behind what it stands for.
    const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto lines = std::count(begin, begin + static_cast<std::ptrdiff_t>(expansion->length), '\n');
    text_.replace(at_, expansion->length, std::string(static_cast<std::size_t>(lines), '\n'));
    insert(expansion->text, {text_.size() - at_, expansion->name, std::move(documented), found_.size(), 0, ""});
    return true;
  }

  /// A docstring above an invocation describes the one function that the macro declares, with its in-place and _out
  /// forms. Of several, each has its own in the macro's body.
  void end_of_inserted() {
    const Inserted inserted = std::move(inserted_.back());
    inserted_.pop_back();
    if (inserted.macro.empty()) {
      line_ = inserted.line;
      file_ = inserted.included_from;
      return;
    }
    if (!inserted.docstring) return;
    std::set<std::string> names;
    for (std::size_t i = inserted.first; i < found_.size(); ++i) names.insert(without_suffix(found_[i].name));
    if (names.size() == 1) {
      for (std::size_t i = inserted.first; i < found_.size(); ++i) describe(found_[i], *inserted.docstring);
    }
    if (names.empty()) docstring_ = inserted.docstring;  // it stands above what follows
  }

  static std::string without_suffix(std::string name) {
    for (const std::string_view suffix : {"_out", "_"}) {
      if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
    }
    return name;
  }

  void block_comment() {
    const std::size_t begin = at_;
    skip_block_comment();
    const std::string_view comment = std::string_view(text_).substr(begin, at_ - begin);
    if (comment.starts_with("/**") && statement_.empty()) docstring_ = docstring_.value_or("") + std::string(comment);
    blank_ = false;
  }

  void skip_block_comment() {
    const auto end = text_.find("*/", at_ + 2);
    for (const auto stop = end == std::string::npos ? text_.size() : end + 2; at_ < stop; ++at_) {
      line_ += text_[at_] == '\n';
    }
  }

  void comment() {
    const bool documents = at("///");
    const bool behind = at("///<");
    const auto end = std::min(text_.find('\n', at_), text_.size());
    const std::string text = text_.substr(at_, end - at_) + "\n";
    at_ = end;
    blank_ = false;
    if (behind) {
      if (!found_.empty() && found_.back().line <= line_ && line_ - found_.back().line < 4) {
        describe(found_.back(), text);
      }
    } else if (documents && statement_.empty()) {
      docstring_ = docstring_.value_or("") + text;
    }
  }

  static void describe(Declaration& declaration, const std::string& text) {
    declaration.has_docstring = true;
    declaration.docstring += text;
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
      if (found_.size() > before) found_.back().alias_of = called_by(std::string_view(text_).substr(body, at_ - body));
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
      if (at("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (at("/*")) {
        skip_block_comment();
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
    docstring_.reset();
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
    const char before = begin > 0 ? statement_[begin - 1] : ' ';
    if (name.empty() || macro || before == '~' || before == ':') return;  // f() in `Box<T>::f()` is declared in Box
    if (!scopes_.empty() && scopes_.back().kind == Scope::kClass && scopes_.back().name == name) return;
    std::string scope;
    for (const Scope& part : scopes_) scope += (scope.empty() ? "" : "::") + part.name;
    found_.push_back({scope, name, file_, begins_, docstring_.has_value(), docstring_.value_or(""), ""});
  }

  std::string text_;
  const Includes& includes_;
  Macros macros_;
  std::set<std::string> seen_;  ///< headers whose macros are known
  std::vector<Inserted> inserted_;
  std::string file_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t begins_ = 1;
  int parentheses_ = 0;
  std::optional<std::string> docstring_;
  bool blank_ = false;
  std::string statement_;
  std::vector<Scope> scopes_;
  std::vector<Declaration> found_;
};

}  // namespace

std::vector<Declaration> declared_functions(std::string_view header, const Includes& includes) {
  return Reader(header, includes).read();
}

}  // namespace tenon::test
