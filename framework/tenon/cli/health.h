// What is there on this machine, what is missing, and how to get it.
#pragma once

#include <tenon/report/replay/doctor_report.h>

#include <vector>

namespace tenon::cli {

/// Loads every plugin and asks every backend.
std::vector<HealthFinding> check_health();

}  // namespace tenon::cli
