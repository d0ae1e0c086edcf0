// One assertion: a call throws, and its message contains a text.
#pragma once

#include "message_of.h"

#include <tenon/core/error.h>

#include <gtest/gtest.h>

#include <string>

namespace tenon::test {

/// Fails, at the line that asks, where `call` throws no E, or one that says something else.
template <class E = Error>
void expect_error(const CallRef& call, const std::string& text, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  const std::string said = message_of<E>(call, file, line);
  if (said.find(text) == std::string::npos) ADD_FAILURE_AT(file, line) << "says: " << said << "\nwanted: " << text;
}

}  // namespace tenon::test
