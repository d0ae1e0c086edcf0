// The one place where tests compile nlohmann's parser and writer.
#include "support/json.h"

template class nlohmann::basic_json<>;

namespace nlohmann {
void PrintTo(const json& value, std::ostream* out) { *out << value.dump(); }
}  // namespace nlohmann

namespace tenon::test {

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }
nlohmann::json try_parse_json(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace tenon::test
