// Where the memory of parameters comes from: it is attributed to the purpose "parameter".
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <optional>

namespace tenon::nn {

/// An uninitialised tensor of the default dtype for a parameter; requires no gradient yet.
TENON_API Tensor new_parameter(IntArrayRef sizes);
/// A buffer filled with one value.
TENON_API Tensor new_buffer(IntArrayRef sizes, Scalar value, TensorOptions options = {});
/// What reset() registers of a tensor that the options give: that one at first, where `own`, the module's member, is
/// undefined; in a copy of the module a tensor of its own, so that what clone() sets is not the original's.
TENON_API Tensor given_buffer(const Tensor& given, const Tensor& own);

/// While it lives, what new_parameter() and new_buffer() make on this thread is on `device` and has no memory, which
/// Module::to_empty() gives it (PyTorch: modules made on the device "meta"). Nothing is drawn and nothing is written.
class TENON_API ParametersWithoutMemory {
 public:
  /// Throws Error for a device that computes: its kernels would write to where there is nothing. `at_once`: memory is
  /// asked for as they are made, in their order, and is not written.
  explicit ParametersWithoutMemory(Device device, bool at_once = false);
  ~ParametersWithoutMemory();
  ParametersWithoutMemory(const ParametersWithoutMemory&) = delete;
  ParametersWithoutMemory& operator=(const ParametersWithoutMemory&) = delete;

 private:
  std::optional<Device> previous_;
  bool previous_at_once_;
};

}  // namespace tenon::nn
