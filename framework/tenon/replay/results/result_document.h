// The JSON that verbs print and runs leave behind, {"schema_version": 1, …}: how it begins, and what every reader of it
// checks first. The type of the JSON is the reader's, so that this header needs no library.
#pragma once

#include <tenon/core/error.h>

#include <cstddef>
#include <string>

namespace tenon::replay {

/// How every document begins. `environment_json` is runtime's block, empty where nobody asks; `kind` is left out of
/// what is not a kind by name.
template <class Json>
Json begin_result_document(const std::string& environment_json, const char* kind = nullptr) {
  Json json;
  json["schema_version"] = 1;
  if (kind != nullptr) json["kind"] = kind;
  json["environment"] = environment_json.empty() ? Json::object() : Json::parse(environment_json);
  return json;
}

/// Its text, as verbs print it. What is no UTF-8 is replaced.
template <class Json>
std::string text_of_document(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// The document in `text`. `fail` throws; it gets what is wrong, as in "it is empty", and adds whose output was
/// expected. Throws ConfigError for another schema_version.
template <class Json, class Fail>
Json parse_result_document(const std::string& text, const std::string& path, const Fail& fail) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) fail("it is empty");
  Json json;
  try {
    json = Json::parse(text);
  } catch (const typename Json::parse_error& error) {
    fail("no JSON from byte " + std::to_string(error.byte) + " on");
  }
  if (!json.is_object()) fail(std::string("expected an object, found ") + json.type_name());
  if (!json.contains("schema_version")) fail("it has no \"schema_version\"");
  if (json["schema_version"] != 1)
    throw ConfigError(path + ": has schema_version " + json["schema_version"].dump() + "; 1 is read");
  return json;
}

/// Calls `fail` unless the document has a list of objects as its "rows".
template <class Json, class Fail>
void check_rows(const Json& document, const Fail& fail) {
  const auto rows = document.find("rows");
  if (rows == document.end()) fail("it has no \"rows\"");
  if (!rows->is_array()) fail(std::string("its \"rows\" are of type ") + rows->type_name());
  std::size_t number = 0;
  for (const Json& row : *rows) {
    ++number;
    if (!row.is_object()) fail("row " + std::to_string(number) + " is of type " + row.type_name());
  }
}

}  // namespace tenon::replay
