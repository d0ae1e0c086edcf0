// c10::str and c10::Join: text out of whatever can be printed.
#pragma once

#include <torch/torch.h>

#include <sstream>
#include <string>

namespace tenon {

/// All parts, one after another.
template <class... Parts>
std::string str(const Parts&... parts) {
  return detail::concatenate(parts...);
}

/// The elements of a container, `delimiter` between them.
template <class Container>
std::string Join(const std::string& delimiter, const Container& parts) {
  std::ostringstream text;
  const char* before = "";
  for (const auto& part : parts) {
    text << before << part;
    before = delimiter.c_str();
  }
  return text.str();
}

}  // namespace tenon
