// The exit code of an exception.
#pragma once

#include <tenon/core/error.h>

#include <exception>

namespace tenon::cli {

/// What a program that ends with this should return: an Error's own code, 1 for all else.
inline ExitCode exit_code_of(const std::exception& error) noexcept {
  const auto* const known = dynamic_cast<const Error*>(&error);
  return known == nullptr ? ExitCode::kFailed : known->exit_code();
}

}  // namespace tenon::cli
