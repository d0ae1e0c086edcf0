// What this thread means by "the device" and "the stream" where it does not say. Declared in device_state.h.
#include <tenon/core/error.h>
#include <tenon/device/device_state.h>
#include <tenon/device/with_index.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace tenon {

namespace {

constinit thread_local std::array<DeviceIndex, kMaxDeviceTypes> device_of_thread{};
// Most threads never leave stream 0: then this number is all that is read.
constinit thread_local int guards_of_thread = 0;

struct StreamChoice {
  Device device;
  StreamRef stream;
};

std::vector<StreamChoice>& streams_of_thread() {
  thread_local std::vector<StreamChoice> streams;
  return streams;
}

void set_stream(Device device, StreamRef stream) {
  auto& streams = streams_of_thread();
  const auto found =
      std::find_if(streams.begin(), streams.end(), [&](const StreamChoice& c) { return c.device == device; });
  if (found == streams.end()) {
    streams.push_back({device, stream});
  } else {
    found->stream = stream;
  }
}

}  // namespace

Device with_index(Device device) {
  if (!device.has_index()) device.set_index(current_device(device.type()));
  return device;
}

StreamRef current_stream(Device device) {
  if (guards_of_thread == 0) [[likely]]
    return {};
  const Device exact = with_index(device);
  for (const StreamChoice& choice : streams_of_thread()) {
    if (choice.device == exact) return choice.stream;
  }
  return {};
}

StreamGuard::StreamGuard(Device device, StreamRef stream)
    : device_(with_index(device)), previous_(current_stream(device_)) {
  set_stream(device_, stream);
  ++guards_of_thread;
}

StreamGuard::~StreamGuard() {
  set_stream(device_, previous_);
  --guards_of_thread;
}

DeviceIndex current_device(DeviceType type) { return device_of_thread[type.id()]; }

DeviceIndex set_current_device(DeviceType type, DeviceIndex index) {
  if (index < 0 || index >= kMaxDevicesPerType) {
    throw Error(fmt::format("no device '{}:{}': indices go from 0 to {}", type.name(), static_cast<int>(index),
                            kMaxDevicesPerType - 1));
  }
  return std::exchange(device_of_thread[type.id()], index);
}

}  // namespace tenon
