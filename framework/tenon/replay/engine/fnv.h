// FNV-1a, 64 bit. By hand: it is one line, and no library takes the start value below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::replay {

class Fnv1a {
 public:
  void bytes(const void* data, std::size_t count) {
    const auto* next = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < count; ++i) value_ = (value_ ^ next[i]) * 0x100000001b3u;
  }
  void number(std::uint64_t number) { bytes(&number, sizeof number); }
  std::uint64_t value() const { return value_; }

 private:
  // The start value that the recorded outcomes of the real allocator use: the standard one, 14695981039346656037,
  // without its last digit. Series are comparable with theirs only so.
  std::uint64_t value_ = 1469598103934665603u;
};

/// Sixteen hexadecimal digits.
inline std::string hex64(std::uint64_t value) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) text[static_cast<std::size_t>(i)] = "0123456789abcdef"[value & 15];
  return text;
}

}  // namespace tenon::replay
