// What a program of this suite runs the kernels of: each program has one file beside this that says so.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tenon::conformance {

/// One of several ways to run the same kernels.
struct Level {
  std::string name;
  std::function<void()> enter;
};

struct Target {
  std::string plugin;         ///< its file
  std::vector<Level> levels;  ///< none: those that the plugin has by itself
  bool slow = false;          ///< every row, dtype and layout, but not the largest shapes
};
const Target& target();

}  // namespace tenon::conformance
