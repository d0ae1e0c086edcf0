// What `tenon doctor` says: of a machine, what is there and what is missing; of a history, what it would have fitted
// under.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/advise/diagnosis.h>
#include <tenon/report/table.h>

#include <string>
#include <vector>

namespace tenon {

enum class HealthState { kOk, kMissing, kBroken };

/// One thing that was looked for on this machine.
struct HealthFinding {
  std::string what;
  HealthState state = HealthState::kOk;
  std::string detail;
  std::string remedy;  ///< empty when ok
  bool needed = true;  ///< whether its absence is a fault
};
TENON_API Table findings_table(const std::vector<HealthFinding>& findings);
/// What stands above that table: this program and the machine that it runs on.
TENON_API std::string machine_heading();

/// The whole output about a file's histories in one of the formats. `is_capacity_given`: by the user, not by the file.
TENON_API std::string diagnosis_report(const std::vector<replay::Diagnosis>& diagnoses, bool is_capacity_given,
                                       const std::string& file, TableFormat format,
                                       const std::string& environment_json);

}  // namespace tenon
