// Page-locked host memory: which device's, and tensors in it.
#include <tenon/device/memory_api.h>
#include <tenon/ops/create/pinned.h>
#include <tenon/ops/support/support.h>

#include <algorithm>

namespace tenon {

using namespace ops;

std::optional<Device> pinned_memory_device() {
  for (DeviceState* state : open_devices()) {
    if (state->pinned_host_allocator()) return state->device();
  }
  try {
    const Device device = Device(kCUDA);
    if (device_state(device).pinned_host_allocator()) return device_state(device).device();
  } catch (const Error&) {  // no backend of that kind, or no device
  }
  return std::nullopt;
}

Tensor ops::allocate_pinned(std::optional<Device> device, const Dims& sizes, const Dims& strides, Dtype dtype) {
  TENON_SCOPE(allocate_pinned, device, sizes, strides, dtype)
  if (!device) device = pinned_memory_device();
  if (!device) {
    throw Error(
        "cannot pin: no open device has page-locked host memory; it is for devices that copy by themselves, so open "
        "one "
        "first (cuda:0, simulated:0) or name it: pin_memory(device)");
  }
  DeviceState& owner = device_state(*device);
  if (!owner.pinned_host_allocator()) pinned_host_allocator(owner.device());  // throws, with the reason
  auto impl = make_intrusive<TensorImpl>(
      make_intrusive<StorageImpl>(device_state(Device(kCPU)), strided_bytes(sizes, strides, dtype),
                                  StorageImpl::PinnedFor{owner}, element_kind_of(dtype)),
      dtype);
  impl->set_strided(sizes, strides, 0);
  if (making_inference_tensors) impl->set_inference(true);
  return Tensor(std::move(impl));
}

bool Tensor::is_pinned(std::optional<Device> device) const {
  DeviceState* const pinned_for = impl().storage().pinned_for();
  if (!pinned_for || !device) return pinned_for != nullptr;
  return pinned_for->device().type() == device->type() &&
         (!device->has_index() || pinned_for->device().index() == device->index());
}

Tensor Tensor::pin_memory(std::optional<Device> device) const {
  TENON_SCOPE(pin_memory, *this, device)
  if (!this->device().is_cpu())
    throw Error("cannot pin a tensor on " + this->device().str() + ": only dense CPU tensors can be pinned");
  if (is_pinned(device)) return *this;
  Recording recording = record<0>("PinMemoryBackward0", {this}, [](Backward& b) { b.set(0, b.take_grad()); });
  const TensorImpl& self = impl();
  const bool dense = self.is_non_overlapping_and_dense();
  Tensor result =
      allocate_pinned(device, self.sizes(), dense ? self.strides() : contiguous_strides(self.sizes()), self.dtype());
  {
    NoGradGuard no_grad;
    result.copy_(*this);
  }
  recording.output(result);
  return result;
}

}  // namespace tenon
