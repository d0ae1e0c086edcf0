// One assertion: a call throws, and its message contains a text.
#pragma once

#include <tenon/core/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tenon::test {

template <class E = Error, class Call>
void expect_error(Call call, const std::string& text) {
  EXPECT_THAT(call, ::testing::ThrowsMessage<E>(::testing::HasSubstr(text)));
}

}  // namespace tenon::test
