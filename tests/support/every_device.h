// Whether tests run every pair of what they set up and the device, allocator or layout that it runs on, or each of them
// once: all of them with TENON_TEST_DEVICES=all, as `./dev test --full` and bench/gpu_check set it.
#pragma once

#include <cstdlib>
#include <string_view>

namespace tenon::test {

inline bool wants_every_device() {
  const char* const asked = std::getenv("TENON_TEST_DEVICES");
  return asked != nullptr && std::string_view(asked) == "all";
}

}  // namespace tenon::test
