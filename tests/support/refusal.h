// The first line of what a call is refused with.
#pragma once

#include "function_ref.h"

#include <tenon/core/error.h>

#include <string>

namespace tenon {

/// Empty where nothing is refused.
inline std::string refusal_of(const test::CallRef& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string text = error.what();
    return text.substr(0, text.find('\n'));
  }
  return {};
}

}  // namespace tenon
