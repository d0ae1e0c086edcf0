// The words of PyTorch's configuration string, and the numbers in them, as PyTorch 2.15 reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Throws ConfigError that quotes the whole string.
[[noreturn]] void refuse_conf(std::string_view text, const std::string& message);

/// C's stoull: a sign is taken, what follows the digits is not looked at. The same for a real number, in any spelling
/// that strtod takes. Both throw ConfigError that names the key.
std::uint64_t conf_number(std::string_view text, const std::string& word, const std::string& key);
double conf_real(std::string_view text, const std::string& word, const std::string& key);

/// The characters , : [ ] each by themselves, and runs of anything else with white space taken out.
class ConfTokens {
 public:
  explicit ConfTokens(std::string_view text);

  bool done() const { return next_ >= tokens_.size(); }
  std::size_t index() const { return next_; }
  std::string_view text() const { return text_; }
  const std::vector<std::string>& all() const { return tokens_; }

  /// Throws ConfigError at the end of the string, as all that follows here.
  const std::string& peek() const;
  std::string take();
  /// PyTorch takes any token where it wants a separator.
  void take_separator() { take(); }
  /// Exactly True or False.
  bool take_boolean();
  /// After the opening bracket, up to and with the closing one: name, separator, value for each item.
  template <typename TakeItem>
  void take_list(const TakeItem& take_item) {
    while (peek() != "]") {
      const std::string name = take();
      take_separator();
      take_item(name, take());
      if (peek() != "]") take_separator();
    }
    take();
  }

 private:
  std::string_view text_;
  std::vector<std::string> tokens_;
  std::size_t next_ = 0;
};

}  // namespace tenon
