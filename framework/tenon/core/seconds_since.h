// seconds_since: how long something has taken by now.
#pragma once

#include <chrono>

namespace tenon {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace tenon
