// JSON that the program writes, as tests read it. Parsing, writing and what a failed expectation shows are compiled
// once, in json.cpp: they are three seconds of each file otherwise.
#pragma once

#include <nlohmann/json.hpp>

#include <ostream>
#include <string>
#include <string_view>

extern template class nlohmann::basic_json<>;

namespace nlohmann {
/// For GoogleTest: the text, and not element by element.
void PrintTo(const json& value, std::ostream* out);
}  // namespace nlohmann

namespace tenon::test {

/// Throws nlohmann::json::parse_error where the text is no JSON.
nlohmann::json parse_json(std::string_view text);
/// A discarded value in place of an exception.
nlohmann::json try_parse_json(std::string_view text);

}  // namespace tenon::test
