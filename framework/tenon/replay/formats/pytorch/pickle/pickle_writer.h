// Writing pickles of protocol 4: the few operators that plain data need.
#pragma once

#include <tenon/core/text/utf8.h>
#include <tenon/replay/formats/io/output_file.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tenon::replay {

/// Containers are written as they come: begin, items, end. Texts are written once and named by number after that.
class PickleWriter {
 public:
  explicit PickleWriter(OutputFile& out) : out_(out) { out_.write(std::string_view("\x80\x04", 2)); }
  void stop() { out_.put('.'); }

  void begin_dict() { out_.write("}("); }
  void end_dict() { out_.put('u'); }
  void begin_list() { out_.write("]("); }
  void end_list() { out_.put('e'); }
  void truth(bool value) { out_.put(value ? '\x88' : '\x89'); }
  void none() { out_.put('N'); }
  void real(double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bits = __builtin_bswap64(bits);
    out_.put('G');
    raw(&bits, sizeof bits);
  }
  void number(std::int64_t value) {
    if (value >= 0 && value < 256) {
      out_.put('K');
      out_.put(static_cast<char>(value));
    } else if (value >= 0 && value < 65536) {
      out_.put('M');
      raw(&value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      out_.put('J');
      raw(&value, 4);
    } else {
      out_.write(std::string_view("\x8a\x08", 2));
      raw(&value, 8);
    }
  }
  /// Beyond 2^63 a sign byte is needed.
  void address(std::uint64_t value) {
    if (value < std::uint64_t{1} << 63) return number(static_cast<std::int64_t>(value));
    out_.write(std::string_view("\x8a\x09", 2));
    raw(&value, 8);
    out_.put('\0');
  }
  void text(std::string_view value) {
    const auto [entry, is_new] = memo_.try_emplace(std::string(value), next_memo_);
    if (!is_new) return get(entry->second);
    ++next_memo_;
    const std::string utf8 = valid_utf8(value);
    const auto size = static_cast<std::uint32_t>(utf8.size());
    out_.put('X');
    raw(&size, 4);
    out_.write(utf8);
    out_.put('\x94');
  }
  /// A pair of small integers: pool ids.
  void pair(std::int64_t first, std::int64_t second) {
    number(first);
    number(second);
    out_.put('\x86');
  }
  /// Remembers what was just written, for recall().
  std::uint32_t remember() {
    out_.put('\x94');
    return next_memo_++;
  }
  void recall(std::uint32_t id) { get(id); }

 private:
  void raw(const void* data, std::size_t bytes) { out_.write({static_cast<const char*>(data), bytes}); }
  void get(std::uint32_t id) {
    out_.put('j');
    raw(&id, 4);
  }
  OutputFile& out_;
  std::unordered_map<std::string, std::uint32_t> memo_;
  std::uint32_t next_memo_ = 0;
};

}  // namespace tenon::replay
