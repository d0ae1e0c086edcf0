// Sums over the steps of a run.
#include <tenon/train/step/virtual_steps.h>

#include <tenon/device/device_state.h>
#include <tenon/device/devices.h>
#include <tenon/train/peaks.h>

#include <utility>

namespace tenon::train {

VirtualSteps::VirtualSteps(std::vector<Device> devices) : devices_(std::move(devices)) {
  for (const Device& device : devices_) has_cost_models_ |= device_activity(device).has_value();
  activities_.resize(devices_.size());
  memory_.resize(devices_.size());
}

MemoryStats VirtualSteps::memory_of(std::size_t device) const {
  MemoryStats memory = memory_[device];
  merge_peaks(memory, device_state(devices_[device]).allocator().stats());
  return memory;
}

void VirtualSteps::begin() {
  for (std::size_t i = 1; i < devices_.size(); ++i) memory_[i] = memory_of(i);
  if (!has_cost_models_) return;
  for (const Device& device : devices_) {
    synchronize(device);
    reset_device_activity(device);
  }
  begun_us_ = virtual_time_us();
}

void VirtualSteps::end() {
  if (!has_cost_models_) return;
  for (const Device& device : devices_) synchronize(device);
  if (++seen_ == 2) {
    step_us_ = counted_ = 0;
    activities_.assign(devices_.size(), {});
  }
  ++counted_;
  step_us_ += virtual_time_us() - begun_us_;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const DeviceActivity step = device_activity(devices_[i]).value_or(DeviceActivity{});
    activities_[i].kernel_us += step.kernel_us;
    activities_[i].copy_us += step.copy_us;
    activities_[i].overlapped_us += step.overlapped_us;
  }
}

void VirtualSteps::note(ExperimentResult& result) const {
  if (devices_.size() < 2 && !has_cost_models_) return;
  if (counted_ > 0) result.estimated_step_ms = step_us_ / static_cast<double>(counted_) / 1000;
  result.devices.clear();
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const MemoryStats stats = i == 0 ? result.memory : memory_of(i);
    DeviceResult device{.device = devices_[i].str(),
                        .peak_requested_bytes = stats.requested_bytes.peak,
                        .peak_allocated_bytes = stats.allocated_bytes.peak,
                        .peak_reserved_bytes = stats.reserved_bytes.peak};
    for (int purpose = 0; purpose < kPurposeCount; ++purpose)
      device.peak_requested_by_purpose[static_cast<std::size_t>(purpose)] =
          stats.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
    if (counted_ > 0) {
      const double steps_in_ms = 1000 * static_cast<double>(counted_);
      const DeviceActivity& sum = activities_[i];
      device.estimated = {.kernel_ms = sum.kernel_us / steps_in_ms,
                          .copy_ms = sum.copy_us / steps_in_ms,
                          .hidden_copy_ms = sum.overlapped_us / steps_in_ms,
                          .idle = step_us_ > 0 ? 1 - sum.kernel_us / step_us_ : 0};
    }
    result.devices.push_back(std::move(device));
  }
  if (!result.estimated_step_ms) return;
  double idle = 0;
  for (const DeviceResult& device : result.devices)
    idle += device.estimated->idle / static_cast<double>(result.devices.size());
  result.figures.emplace_back("estimated_step_ms", *result.estimated_step_ms);
  result.figures.emplace_back("estimated_idle", idle);  // mean over the devices
}

}  // namespace tenon::train
