// Thread-local modes: whether operators record history.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>

#include <cstdint>

namespace tenon {

struct TENON_API GradMode {
  static bool is_enabled();
  static void set_enabled(bool enabled);
};

/// Sets the mode while it lives.
class TENON_API AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : previous_(GradMode::is_enabled()) { GradMode::set_enabled(enabled); }
  ~AutoGradMode() { GradMode::set_enabled(previous_); }
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  bool previous_;
};

class TENON_API NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() : AutoGradMode(false) {}
};

/// No history, no version counters for tensors made inside, no view tracking.
class TENON_API InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;
  static bool is_enabled();

 private:
  bool previous_inference_;
  bool previous_grad_;
};

namespace autograd {
using tenon::AutoGradMode;
using tenon::GradMode;
using tenon::InferenceMode;
using tenon::NoGradGuard;

/// Autocast of a thread (autocast.h), by kind of device.
struct AutocastState {
  std::uint32_t kinds = 0;              ///< a bit for each kind that casts; what operators look at
  std::uint32_t kinds_of_bfloat16 = 1;  ///< a bit for each kind whose dtype is bfloat16, not float16: the cpu
  bool keeps_casts = true;
};
static_assert(kMaxDeviceTypes <= 32);

/// Both modes and the rest of what a thread that works for another one must take over.
struct ThreadState {
  bool grad_enabled = true;
  bool inference = false;
  bool anomaly = false;
  bool anomaly_check_nan = true;
  AutocastState autocast;
};
TENON_API ThreadState thread_state();
TENON_API void set_thread_state(const ThreadState& state);
}  // namespace autograd

}  // namespace tenon
