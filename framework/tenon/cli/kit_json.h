// The kit's results for programs.
#pragma once

#include <tenon/conformance/conformance.h>
#include <tenon/report/table.h>

#include <string>
#include <vector>

namespace tenon::cli {

/// The kit on one SPEC.
struct KitRun {
  std::string allocator;
  std::string spec;
  conformance::Report report;
};

/// {"schema_version": 1, "environment": …, "rows": the checks, "runs": for each of `runs` its SPEC, its seed, its speed
/// (null where it was not measured) and the checks not run}. `only` as in KitOptions.
std::string kit_json(const Table& rows, const std::vector<KitRun>& runs, const std::string& only,
                     const std::string& environment_json);

}  // namespace tenon::cli
