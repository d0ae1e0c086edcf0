// JSON strings by the JSON library, which replaces what is no UTF-8 by the same rule as valid_utf8().
#include <tenon/core/text/utf8.h>
#include <tenon/replay/formats/io/utf8.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tenon::replay {

std::string quoted_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
