// UTF-8 by the JSON library, which has to know it anyway.
#include <tenon/replay/formats/io/utf8.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace tenon::replay {

std::string quoted_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string valid_utf8(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return std::string(text);
  return nlohmann::json::parse(quoted_json(text)).get<std::string>();
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

}  // namespace tenon::replay
