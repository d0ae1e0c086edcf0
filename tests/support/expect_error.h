// One assertion: a call throws, and its message contains a text.
#pragma once

#include "function_ref.h"

#include <tenon/core/error.h>

#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <string_view>

namespace tenon::test {

/// Fails, at the line that asks, where `call` throws no E, or one that says something else.
template <class E = Error>
void expect_error(const CallRef& call, const std::string& text, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  try {
    call();
  } catch (const E& error) {
    if (std::string_view(error.what()).find(text) == std::string_view::npos)
      ADD_FAILURE_AT(file, line) << "says: " << error.what() << "\nwanted: " << text;
    return;
  } catch (const std::exception& error) {
    ADD_FAILURE_AT(file, line) << "threw another error: " << error.what() << "\nwanted: " << text;
    return;
  }
  ADD_FAILURE_AT(file, line) << "threw nothing, wanted: " << text;
}

}  // namespace tenon::test
