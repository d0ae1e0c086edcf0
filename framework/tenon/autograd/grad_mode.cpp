// Grad, inference and anomaly modes of the calling thread.
#include <tenon/autograd/anomaly_mode.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/modes.h>
#include <tenon/core/demangled.h>
#include <tenon/tensor/factory.h>

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <span>

namespace tenon {

namespace {
// Grad mode set inside inference mode is answered to who asks, and no more: nothing is recorded there.
constinit thread_local bool enabled_in_inference = false;
}  // namespace

bool GradMode::is_enabled() { return autograd::modes.grad_enabled || enabled_in_inference; }
void GradMode::set_enabled(bool enabled) {
  autograd::modes.grad_enabled = enabled && !autograd::modes.inference;
  enabled_in_inference = enabled && autograd::modes.inference;
}

InferenceMode::InferenceMode(bool enabled)
    : previous_inference_(autograd::modes.inference), previous_grad_(GradMode::is_enabled()) {
  making_inference_tensors = autograd::modes.inference = enabled;
  GradMode::set_enabled(!enabled);
}
InferenceMode::~InferenceMode() {
  making_inference_tensors = autograd::modes.inference = previous_inference_;
  GradMode::set_enabled(previous_grad_);
}
bool InferenceMode::is_enabled() { return autograd::modes.inference; }

namespace autograd {

ThreadState thread_state() { return modes; }
void set_thread_state(const ThreadState& state) {
  modes = state;
  enabled_in_inference = false;
  making_inference_tensors = state.inference;
}

bool AnomalyMode::is_enabled() { return modes.anomaly; }
bool AnomalyMode::should_check_nan() { return modes.anomaly_check_nan; }
void AnomalyMode::set_enabled(bool enabled, bool check_nan) {
  modes.anomaly = enabled;
  modes.anomaly_check_nan = check_nan;
}
DetectAnomalyGuard::DetectAnomalyGuard(bool check_nan)
    : previous_enabled_(modes.anomaly), previous_check_nan_(modes.anomaly_check_nan) {
  AnomalyMode::set_enabled(true, check_nan);
}
DetectAnomalyGuard::~DetectAnomalyGuard() { AnomalyMode::set_enabled(previous_enabled_, previous_check_nan_); }

std::string capture_stack() {
  void* frames[48];
  const auto count = static_cast<std::size_t>(backtrace(frames, static_cast<int>(std::size(frames))));
  std::string text;
  // Without this function and the node's constructor.
  for (void* const frame : std::span(frames, count).subspan(std::min<std::size_t>(count, 2))) {
    Dl_info info{};
    if (dladdr(frame, &info) == 0) continue;
    std::string line = "  ";
    if (info.dli_sname) {
      line += demangled(info.dli_sname);
    } else {
      // Without a name: the offset that addr2line takes.
      char offset[32];
      std::snprintf(
          offset, sizeof offset, "+0x%zx",
          static_cast<std::size_t>(static_cast<const char*>(frame) - static_cast<const char*>(info.dli_fbase)));
      line += offset;
    }
    line += std::string(" (") + (info.dli_fname ? info.dli_fname : "?") + ")";
    text += line + "\n";
  }
  return text;
}

}  // namespace autograd
}  // namespace tenon
