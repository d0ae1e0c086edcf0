// How long tests that look for races go on: a second or two, or TENON_STRESS times as long.
#pragma once

#include <cstdlib>
#include <thread>
#include <vector>

namespace tenon::test {

/// `usual` rounds, times the number in the environment variable TENON_STRESS.
inline int stress_rounds(int usual) {
  const char* const factor = std::getenv("TENON_STRESS");
  return factor ? usual * std::atoi(factor) : usual;
}

/// Runs body(0) … body(count - 1), each on a thread of its own, and waits for all of them.
template <class Body>
void on_threads(int count, const Body& body) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
}

}  // namespace tenon::test
