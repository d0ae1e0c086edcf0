// The checks of the kit. Each returns what is wrong, nothing when nothing is.
#pragma once

#include <tenon/conformance/conformance.h>
#include <tenon/conformance/history_runner.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tenon::conformance {

struct Check {
  const char* name;
  const char* promise;
  Finding (*run)(const Subject& subject, const KitOptions& options);
};

/// conformance.cpp says in which order they run.
std::span<const Check> checks_of_requests();
std::span<const Check> checks_of_placement();
std::span<const Check> checks_of_exhaustion();
std::span<const Check> checks_of_figures();
std::span<const Check> checks_of_host_memory();
std::span<const Check> checks_of_failures();
std::span<const Check> checks_of_threads();

struct ManyHistories {
  int streams = 1;
  std::size_t capacity_bytes = 0;
  std::vector<std::string_view> only = {};  ///< causes to look for; empty: all
};

/// Runs random histories, each from a seed that the journal is told; returns the first finding.
Finding run_many(const Subject& subject, const KitOptions& options, const ManyHistories& what);

}  // namespace tenon::conformance
