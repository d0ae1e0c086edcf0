// Parameters and buffers: allocations with the right purpose, or none yet.
#include <tenon/nn/parameter.h>

#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

namespace tenon::nn {

namespace {

constinit thread_local std::optional<Device> without_memory_on;
constinit thread_local bool asks_at_once = false;

/// A tensor whose address stands for no memory. No kernel runs on its device, so the address is never read.
Tensor without_memory(IntArrayRef sizes, const TensorOptions& options) {
  if (asks_at_once) return tenon::empty(sizes, options.device(*without_memory_on));
  alignas(64) static char nowhere[64];
  return tenon::from_blob(nowhere, sizes, options.device(*without_memory_on));
}

}  // namespace

Tensor new_parameter(IntArrayRef sizes) {
  PurposeGuard purpose(Purpose::kParameter);
  if (without_memory_on) return without_memory(sizes, {});
  return tenon::empty(sizes);
}

Tensor new_buffer(IntArrayRef sizes, Scalar value, TensorOptions options) {
  PurposeGuard purpose(Purpose::kParameter);
  if (without_memory_on) return without_memory(sizes, tenon::full({}, value, options).options());
  return tenon::full(sizes, value, options);
}

Tensor given_buffer(const Tensor& given, const Tensor& own) { return own.defined() ? own.detach() : given; }

ParametersWithoutMemory::ParametersWithoutMemory(Device device, bool at_once)
    : previous_(without_memory_on), previous_at_once_(asks_at_once) {
  if (device_state(device).driver().properties().computes)
    throw Error("parameters without memory on " + device.str() + ": its kernels would write to them");
  without_memory_on = device;
  asks_at_once = at_once;
}

ParametersWithoutMemory::~ParametersWithoutMemory() {
  without_memory_on = previous_;
  asks_at_once = previous_at_once_;
}

}  // namespace tenon::nn
