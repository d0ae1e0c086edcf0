// Recorded histories that a checkout may have beside it: TENON_TRACES names their folder, ../shared/traces otherwise.
// What needs them says so where it is skipped.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace tenon::test {

inline std::filesystem::path recorded_histories() {
  const char* const named = std::getenv("TENON_TRACES");
  return named != nullptr ? std::filesystem::path(named)
                          : std::filesystem::path(TENON_SOURCE_DIR).parent_path() / "shared" / "traces";
}

}  // namespace tenon::test

/// Skips the test unless this file or folder is among the recorded histories; "" is their folder itself.
#define TENON_NEEDS_RECORDED(name)                                                                      \
  if (const auto needed = tenon::test::recorded_histories() / (name); !std::filesystem::exists(needed)) \
  GTEST_SKIP() << "no recorded histories: " << needed.string() << " does not exist (TENON_TRACES names their folder)"
