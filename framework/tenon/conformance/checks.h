// The checks of the kit. Each returns what is wrong, empty when nothing is.
#pragma once

#include <tenon/conformance/conformance.h>
#include <tenon/conformance/history_runner.h>

#include <span>
#include <string>

namespace tenon::conformance {

struct Check {
  const char* name;
  const char* promise;
  std::string (*run)(const Subject& subject, const RunOptions& options);
};

std::span<const Check> checks_of_requests();
std::span<const Check> checks_of_histories();
std::span<const Check> checks_of_threads();

}  // namespace tenon::conformance
