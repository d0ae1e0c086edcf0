// joined("tanh", "_backward"): two names as one, at compile time.
#pragma once

#include <initializer_list>

namespace tenon::cuda {

/// Long enough for every name of a row with what is put before or after it.
struct JoinedName {
  char text[96] = {};
};

constexpr JoinedName joined(const char* first, const char* second, const char* third = "") {
  JoinedName name;
  int n = 0;
  for (const char* part : {first, second, third}) {
    for (; *part != '\0'; ++part) name.text[n++] = *part;
  }
  return name;
}

}  // namespace tenon::cuda
