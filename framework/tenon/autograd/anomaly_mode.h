// Anomaly mode: nodes remember where their forward ran, and backward checks for NaN.
#pragma once

#include <tenon/core/export.h>

#include <string>

namespace tenon::autograd {

class TENON_API AnomalyMode {
 public:
  static bool is_enabled();
  static bool should_check_nan();
  static void set_enabled(bool enabled, bool check_nan = true);
};

class TENON_API DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true);
  ~DetectAnomalyGuard();
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  bool previous_enabled_;
  bool previous_check_nan_;
};

/// The calling thread's stack, one frame a line, innermost first.
std::string capture_stack();

}  // namespace tenon::autograd
