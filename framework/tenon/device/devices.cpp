// Counting and choosing devices; the backends are asked through the counter.
#include <tenon/device/devices.h>

#include <tenon/core/error.h>
#include <tenon/device/device_state.h>

#include <fmt/format.h>

#include <atomic>
#include <string>

namespace tenon {

namespace {

constinit std::atomic<DeviceCounter> counter_in_service{nullptr};

/// As the backend counts. Throws Error where there is none.
int count_of(DeviceType kind) {
  const DeviceCounter counter = counter_in_service.load();
  if (counter == nullptr) throw Error(fmt::format("no backend is loaded that has devices of kind '{}'", kind.name()));
  return counter(kind);
}

}  // namespace

void set_device_counter(DeviceCounter counter) { counter_in_service.store(counter); }

int device_count(DeviceType kind) {
  try {
    return count_of(kind);
  } catch (const Error&) {
    return 0;
  }
}

bool is_available(DeviceType kind) { return device_count(kind) > 0; }

void set_device(Device device) {
  if (!device.has_index())
    throw Error(fmt::format("set_device('{}'): an index is missing, as in '{}:0'", device.str(), device.str()));
  const int count = count_of(device.type());
  if (device.index() >= count) {
    throw Error(fmt::format("no device '{}' to be the current one: there {} {} of this kind", device.str(),
                            count == 1 ? "is" : "are", count));
  }
  set_current_device(device.type(), device.index());
}

DeviceGuard::DeviceGuard(Device device) : original_(device.type(), current_device(device.type())) {
  set_device(device);
}
DeviceGuard::~DeviceGuard() { set_current_device(original_.type(), original_.index()); }

DeviceProperties device_properties(Device device) { return device_state(device).driver().properties(); }

void synchronize(Device device) { device_state(device).driver().synchronize(); }

}  // namespace tenon
