// The formats that are read, as parameters of tests.
#pragma once

#include <tenon/replay/formats/format.h>

#include <ostream>
#include <vector>

namespace tenon::replay {

/// Names the cases of a format for ctest.
inline void PrintTo(const Format* format, std::ostream* out) { *out << format->name; }
inline std::vector<const Format*> formats_that_are_read() {
  std::vector<const Format*> read;
  for (const Format* const format : formats())
    if (format->read != nullptr) read.push_back(format);
  return read;
}

}  // namespace tenon::replay
