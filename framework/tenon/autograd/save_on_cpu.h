// What backward needs waits in host memory: torch.autograd.graph.save_on_cpu.
#pragma once

#include <tenon/autograd/saved_tensor.h>

namespace tenon::autograd {

struct SaveOnCpuOptions {
  /// Into page-locked memory where the device has it, in the order of its stream and without waiting for it.
  bool pin_memory = true;
};

/// While it lives, what nodes of this thread save for backward is copied to host memory, and back to its device when
/// backward asks for it, so that the device keeps nothing of it in between. Parameters (Purpose::kParameter), which are
/// on the device anyway, and tensors of the host stay where they are. What several nodes save is copied for each of
/// them. A view comes back without the rest of its storage. Backward may run when the guard has ended.
///
/// Inputs of checkpointed parts (checkpoint()) are not saved tensors, and stay on the device.
class TENON_EXPORT SaveOnCpuGuard {
 public:
  TENON_API explicit SaveOnCpuGuard(SaveOnCpuOptions options = {});

 private:
  SavedTensorHooksGuard hooks_;
};

}  // namespace tenon::autograd
