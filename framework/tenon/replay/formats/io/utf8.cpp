// By the JSON library, which replaces what is no UTF-8 by the same rule as valid_utf8() of core/text/utf8.h.
#include <tenon/replay/formats/io/utf8.h>

#include <nlohmann/json.hpp>

namespace tenon::replay {

std::string quoted_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tenon::replay
