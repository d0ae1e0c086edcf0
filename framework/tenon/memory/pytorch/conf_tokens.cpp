// As lenient and as strict as PyTorch's own reading.
#include <tenon/memory/pytorch/conf_tokens.h>

#include <tenon/core/error.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>

namespace tenon {

void refuse_conf(std::string_view text, const std::string& message) {
  throw ConfigError("\"" + std::string(text) + "\": " + message);
}

std::uint64_t conf_number(std::string_view text, const std::string& word, const std::string& key) {
  char* end = nullptr;
  errno = 0;
  const std::uint64_t value = std::strtoull(word.c_str(), &end, 10);
  if (end == word.c_str()) refuse_conf(text, key + " needs a number, not '" + word + "'");
  if (errno == ERANGE) refuse_conf(text, key + " is out of range: " + word);
  return value;
}

double conf_real(std::string_view text, const std::string& word, const std::string& key) {
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(word.c_str(), &end);
  if (end == word.c_str()) refuse_conf(text, key + " needs a number, not '" + word + "'");
  if (errno == ERANGE) refuse_conf(text, key + " is out of range: " + word);
  return value;
}

ConfTokens::ConfTokens(std::string_view text) : text_(text) {
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) tokens_.push_back(std::move(word));
    word.clear();
  };
  for (const char c : text) {
    if (c == ',' || c == ':' || c == '[' || c == ']') {
      flush();
      tokens_.emplace_back(1, c);
    } else if (!std::isspace(static_cast<unsigned char>(c))) {
      word += c;
    }
  }
  flush();
}

const std::string& ConfTokens::peek() const {
  if (done())
    refuse_conf(text_, "it ends in the middle of an option (PyTorch: Index out of bounds in ConfigTokenizer)");
  return tokens_[next_];
}

std::string ConfTokens::take() {
  std::string word = peek();
  ++next_;
  return word;
}

bool ConfTokens::take_boolean() {
  const std::size_t index = next_;
  const std::string word = take();
  if (word == "True") return true;
  if (word == "False") return false;
  refuse_conf(text_, "Expected 'True' or 'False' at index " + std::to_string(index) + " in ConfigTokenizer but got '" +
                         word + "'");
}

}  // namespace tenon
