// Macros that declare functions, expanded as far as a reader of declarations needs: arguments, `##`, no conditionals.
#pragma once

#include <cctype>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::test {

/// Whether a character may be in a name.
inline bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Macros {
 public:
  struct Expansion {
    std::string name;
    std::string text;        ///< one line
    std::size_t length = 0;  ///< of the invocation
  };

  /// Takes note of `#define` and `#undef`. The first definition of a name stands, as under `#if !defined(NAME)`. Of
  /// definitions without parameters only other names of macros count.
  void read_directive(std::string_view directive);

  /// What the invocation at the beginning of `text` stands for; nullopt where none begins there.
  std::optional<Expansion> expand(std::string_view text) const;

 private:
  struct Macro {
    std::vector<std::string> parameters;  ///< "..." may be the last
    std::string body;
    bool is_other_name = false;
  };
  static std::string substituted(const Macro& macro, const std::vector<std::string>& arguments);

  std::map<std::string, Macro, std::less<>> macros_;
};

}  // namespace tenon::test
