// Sequences by table 3-7 of the Unicode standard, well-formed UTF-8.
#include <tenon/core/text/utf8.h>

#include <fmt/format.h>

#include <cstddef>

namespace tenon {
namespace {

struct Sequence {
  std::size_t bytes;  // at least 1
  bool is_whole;
};

/// The sequence that `text` begins with, or as much of one as there is.
Sequence first_sequence(std::string_view text) {
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xc2 || lead > 0xf4) return {1, false};
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte excludes longer forms than needed, halves of UTF-16 pairs and what is beyond U+10FFFF.
  unsigned least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  std::size_t at = 1;
  for (; at < length && at < text.size() && byte(at) >= least && byte(at) <= most; ++at) {
    least = 0x80;
    most = 0xbf;
  }
  return {at, at == length};
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const auto [bytes, is_whole] = first_sequence(text);
    valid += is_whole ? text.substr(0, bytes) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(bytes);
  }
  return valid;
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace tenon
