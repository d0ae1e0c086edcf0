// Hooks that take saved tensors to the host and bring them back.
#include <tenon/autograd/save_on_cpu.h>

#include <tenon/autograd/version_check.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/tensor/storage.h>
#include <tenon/tensor/tensor.h>

#include <any>

namespace tenon::autograd {
namespace {

struct OnHost {
  Tensor copy;
  Device device;  ///< where it comes from
};

bool stays(const Tensor& tensor) {
  return tensor.device().is_cpu() || tensor.numel() == 0 ||
         tensor.impl().storage().block().request.purpose == Purpose::kParameter;
}

/// Memory of the host's that `device` reads and writes by itself; its layout is the tensor's where that has no holes.
Tensor pinned_like(const Tensor& tensor, DeviceState& device) {
  const TensorImpl& impl = tensor.impl();
  const auto bytes = static_cast<std::size_t>(tensor.numel()) * size_of(tensor.scalar_type());
  auto host = make_intrusive<TensorImpl>(
      make_intrusive<StorageImpl>(device_state(Device(kCPU)), bytes, StorageImpl::PinnedFor{device},
                                  element_kind_of(tensor.scalar_type())),
      tensor.scalar_type());
  host->set_strided(impl.sizes(),
                    impl.is_non_overlapping_and_dense() ? impl.strides() : contiguous_strides(impl.sizes()), 0);
  return Tensor(std::move(host));
}

std::any to_host(const Tensor& tensor, bool pin_memory) {
  if (stays(tensor)) return VersionedTensor(tensor);
  const PurposeGuard purpose(Purpose::kActivation);
  DeviceState& device = device_state(tensor.device());
  if (!pin_memory || !device.pinned_host_allocator())
    return OnHost{tensor.to(Device(kCPU), tensor.scalar_type()), tensor.device()};
  const Tensor copy = pinned_like(tensor, device);
  copy.copy_(tensor, /*non_blocking=*/true);
  return OnHost{copy, tensor.device()};
}

Tensor from_host(const std::any& saved) {
  if (const auto* stayed = std::any_cast<VersionedTensor>(&saved)) {
    stayed->check("a SaveOnCpuGuard, which leaves it where it is");
    return stayed->tensor;
  }
  const PurposeGuard purpose(Purpose::kActivation);
  const auto& away = std::any_cast<const OnHost&>(saved);
  return away.copy.to(away.device, away.copy.scalar_type(), /*non_blocking=*/true);
}

}  // namespace

SaveOnCpuGuard::SaveOnCpuGuard(SaveOnCpuOptions options)
    : hooks_({.pack = [pin = options.pin_memory](const Tensor& tensor) { return to_host(tensor, pin); },
              .unpack = from_host}) {}

}  // namespace tenon::autograd
