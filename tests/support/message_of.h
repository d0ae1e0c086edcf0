// What an action that must fail says.
#pragma once

#include <tenon/core/error.h>

#include <gtest/gtest.h>

#include <string>

namespace tenon::test {

/// The message of the E that `action` throws; the test fails when it throws nothing or something else.
template <class E = Error, class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "threw another error: " << error.what();
    return {};
  }
  ADD_FAILURE() << "threw nothing";
  return {};
}

}  // namespace tenon::test
