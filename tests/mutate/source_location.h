// std::source_location for the clang that reads sources: libstdc++ has it only where the compiler has a builtin, which
// clang has from 16 on. What it says does not matter here.
#pragma once

#if defined(__clang__) && __clang_major__ < 16
#include <cstdint>

namespace std {
struct source_location {
  static constexpr source_location current() noexcept { return {}; }
  constexpr uint_least32_t line() const noexcept { return 0; }
  constexpr uint_least32_t column() const noexcept { return 0; }
  constexpr const char* file_name() const noexcept { return ""; }
  constexpr const char* function_name() const noexcept { return ""; }
};
}  // namespace std
#endif
