// What stands in a file.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace tenon::test {

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace tenon::test
