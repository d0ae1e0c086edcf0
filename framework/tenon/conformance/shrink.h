// Makes a history that fails shorter.
#pragma once

#include <tenon/conformance/history_runner.h>

#include <string>

namespace tenon::conformance {

/// The shortest history found that still fails, with what it does.
struct Shrunk {
  Operations history;
  std::string failure;
};
Shrunk shrink(const Subject& subject, Operations history, const RunSettings& settings);

}  // namespace tenon::conformance
