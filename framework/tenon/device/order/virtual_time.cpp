// The host's side of virtual time, and finding the device's.
#include <tenon/device/device_driver.h>
#include <tenon/device/device_state.h>
#include <tenon/device/order/virtual_time.h>

#include <algorithm>
#include <atomic>

namespace tenon {

namespace {
constinit std::atomic<int> cost_models{0};
constinit thread_local double now_us = 0;
}  // namespace

KeepsVirtualTime::KeepsVirtualTime(bool has_cost_model) : has_cost_model_(has_cost_model) {
  if (has_cost_model_) cost_models.fetch_add(1, std::memory_order_relaxed);
}

KeepsVirtualTime::~KeepsVirtualTime() {
  if (has_cost_model_) cost_models.fetch_sub(1, std::memory_order_relaxed);
}

KeepsVirtualTime* virtual_timeline(DeviceDriver& driver) {
  if (cost_models.load(std::memory_order_relaxed) == 0) [[likely]]
    return nullptr;
  auto* const timeline = dynamic_cast<KeepsVirtualTime*>(&driver);
  return timeline != nullptr && timeline->has_cost_model() ? timeline : nullptr;
}

double virtual_time_us() { return now_us; }
void advance_virtual_time(double us) { now_us = std::max(now_us, us); }

std::optional<DeviceActivity> device_activity(Device device) {
  KeepsVirtualTime* const timeline = virtual_timeline(device_state(device).driver());
  if (timeline == nullptr) return std::nullopt;
  return timeline->activity();
}

void reset_device_activity(Device device) {
  if (KeepsVirtualTime* const timeline = virtual_timeline(device_state(device).driver())) timeline->reset_activity();
}

}  // namespace tenon
