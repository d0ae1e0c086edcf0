// Members of JSON that may be of any shape: a part of result_set.cpp, since no header that is installed needs a
// library.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace tenon::measure {

using Json = nlohmann::ordered_json;

/// Null where there is none.
inline const Json& member(const Json& object, const std::string& key) {
  static const Json kNone;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : kNone;
}
/// An empty one where there is no object.
inline const Json& object(const Json& parent, const std::string& key) {
  static const Json kEmpty = Json::object();
  const Json& found = member(parent, key);
  return found.is_object() ? found : kEmpty;
}
/// As it is written; empty of null.
inline std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? std::string() : value.dump();
}

}  // namespace tenon::measure
