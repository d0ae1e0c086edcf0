// States in 8 bits and in host memory.
#include <tenon/optim/state_storage.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/create/pinned.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/quantized/blocks.h>
#include <tenon/optim/optimizer.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tenon::optim {
namespace {

bool is_packed(const Tensor& kept, const Tensor& parameter) {
  return kept.scalar_type() == kUInt8 && parameter.scalar_type() != kUInt8 && kept.dim() == 1 &&
         kept.numel() == quantized::packed_bytes(parameter.numel());
}

/// Uninitialised host memory of the tensor's sizes, that its device reads and writes by itself where it can.
Tensor host_memory_like(const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  if (device_state(tensor.device()).pinned_host_allocator())
    return ops::allocate_pinned(tensor.device(), impl.sizes(), impl.strides(), impl.dtype());
  return tenon::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(kCPU));
}

}  // namespace

void fit_state(OptimizerParamState& state, const Tensor& parameter) {
  const NoGradGuard no_grad;
  const PurposeGuard purpose(Purpose::kOptimizerState);
  for (const StateTensor& slot : state.tensors()) {
    Tensor& tensor = *slot.tensor;
    if (!tensor.defined() || is_packed(tensor, parameter)) continue;
    if (tensor.sizes() != parameter.sizes())
      throw Error(fmt::format("loaded state dict has a state of sizes [{}] for a parameter of sizes [{}]",
                              fmt::join(tensor.sizes(), ", "), fmt::join(parameter.sizes(), ", ")));
    if (tensor.scalar_type() == parameter.scalar_type() && tensor.strides() == parameter.strides()) continue;
    Tensor fitted = tenon::empty_like(parameter, parameter.options().device(tensor.device()));
    fitted.copy_(tensor);
    tensor = fitted;
  }
}

bool StateStorage::packs(const Tensor& parameter) const {
  return options_.in_8_bits && parameter.numel() >= options_.smallest_in_8_bits && parameter.is_floating_point();
}

Tensor StateStorage::bring(const Tensor& kept, const StateTensor& slot, const Tensor& parameter) const {
  if (!kept.defined()) return kept;
  const PurposeGuard purpose(Purpose::kOptimizerState);
  Tensor there = kept;
  if (kept.device() != parameter.device()) {
    there = tenon::empty_strided(kept.sizes(), kept.strides(), kept.options().device(parameter.device()));
    there.copy_(kept, /*non_blocking=*/true);
  }
  return is_packed(there, parameter) ? quantized::unpack_blocks(there, parameter, slot.is_signed) : there;
}

Tensor StateStorage::keep(const Tensor& values, const StateTensor& slot, const Tensor& former,
                          const Tensor& parameter) const {
  if (!values.defined()) return values;
  const PurposeGuard purpose(Purpose::kOptimizerState);
  if (!packs(parameter)) return place(values, former, parameter);
  const bool is_there = former.defined() && former.device() == values.device() && is_packed(former, parameter);
  return place(quantized::pack_blocks(values, slot.is_signed, is_there ? former : Tensor()), former, parameter);
}

/// The tensor where it is to be kept.
Tensor StateStorage::place(const Tensor& tensor, const Tensor& former, const Tensor& parameter) const {
  const Device device = options_.on_host ? Device(kCPU) : parameter.device();
  if (tensor.device() == device) return tensor;
  if (!device.is_cpu()) return tensor.to(device, tensor.scalar_type());
  const bool fits = former.defined() && former.device() == device && former.sizes() == tensor.sizes() &&
                    former.strides() == tensor.strides() && former.scalar_type() == tensor.scalar_type();
  Tensor host = fits ? former : host_memory_like(tensor);
  host.copy_(tensor, /*non_blocking=*/true);
  return host;
}

void StateStorage::settle(OptimizerParamState& state, const Tensor& parameter) const {
  const NoGradGuard no_grad;
  const PurposeGuard purpose(Purpose::kOptimizerState);
  for (const StateTensor& slot : state.tensors()) {
    Tensor& tensor = *slot.tensor;
    if (!tensor.defined()) continue;
    const bool packed = is_packed(tensor, parameter);
    if (packed && packs(parameter)) {
      tensor = place(tensor, {}, parameter);
    } else if (packed || !is_plain() || tensor.device() != parameter.device()) {
      tensor = keep(bring(tensor, slot, parameter), slot, {}, parameter);
    }
  }
}

void StateStorage::finish_copies(Device device) const {
  if (!device.is_cpu()) device_state(device).driver().synchronize();
}

BroughtState::BroughtState(const StateStorage& storage, std::unique_ptr<OptimizerParamState>& slot,
                           const Tensor& parameter)
    : storage_(storage), slot_(slot), parameter_(parameter) {
  if (!slot_) return;
  std::vector<Tensor> brought;
  for (const StateTensor& each : slot_->tensors()) {
    kept_.push_back(*each.tensor);
    brought.push_back(storage_.bring(*each.tensor, each, parameter_));
  }
  std::size_t i = 0;
  for (const StateTensor& each : slot_->tensors()) *each.tensor = std::move(brought[i++]);
}

BroughtState::~BroughtState() {
  if (is_back_ || !slot_) return;
  std::size_t i = 0;
  for (const StateTensor& each : slot_->tensors()) *each.tensor = i < kept_.size() ? kept_[i++] : Tensor();
}

void BroughtState::put_back() {
  if (slot_) {
    const std::vector<StateTensor> tensors = slot_->tensors();
    kept_.resize(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      kept_[i] = storage_.keep(*tensors[i].tensor, tensors[i], kept_[i], parameter_);
      tensors[i].tensor->reset();  // its memory serves the next one
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) *tensors[i].tensor = kept_[i];
  }
  is_back_ = true;
}

}  // namespace tenon::optim
