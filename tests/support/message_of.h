// What an action that must fail says.
#pragma once

#include "function_ref.h"

#include <tenon/core/error.h>

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace tenon::test {

/// The message of the E that `call` throws; the test fails, at the line that asks, when it throws nothing or
/// something else.
template <class E = Error>
std::string message_of(const CallRef& call, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE_AT(file, line) << "threw another error: " << error.what();
    return {};
  }
  ADD_FAILURE_AT(file, line) << "threw nothing";
  return {};
}

}  // namespace tenon::test
