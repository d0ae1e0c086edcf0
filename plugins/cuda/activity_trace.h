// CUPTI: which kernels, copies and fills the GPUs ran, and when, from NVIDIA's own recording ("CUPTI Activity API").
// The library comes with the toolkit and is opened when it is first wanted. There is one recording a process.
#pragma once

#include <tenon/device/order/traces_activity.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tenon::cuda {

class ActivityTrace {
 public:
  /// The one of this process.
  static ActivityTrace& shared();

  /// Records what that device does. Empty; else why it cannot be.
  std::string start(int device);
  /// Calls of CUDA by this thread belong to that correlation until pop().
  void push(std::uint64_t correlation) noexcept;
  void pop() noexcept;
  /// What the device has done since start(), whose work has ended.
  std::vector<TracedActivity> stop(int device);

 private:
  struct Recording;
  ActivityTrace();
  std::unique_ptr<Recording> recording_;
};

}  // namespace tenon::cuda
