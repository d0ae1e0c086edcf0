// Defaults of a driver: one stream, everything done when the call returns.
#include <tenon/core/error.h>
#include <tenon/device/device_driver.h>

namespace tenon {

DeviceDriver::~DeviceDriver() = default;

MemorySource* DeviceDriver::pinned_host_memory() { return nullptr; }

StreamRef DeviceDriver::create_stream(int) {
  throw Error(properties().name + " has one stream only: it works synchronously");
}
void DeviceDriver::destroy_stream(StreamRef) noexcept {}
void DeviceDriver::synchronize(StreamRef) {}
void DeviceDriver::synchronize() {}

EventRef DeviceDriver::create_event(bool) { return {}; }
void DeviceDriver::destroy_event(EventRef) noexcept {}
void DeviceDriver::record(EventRef, StreamRef) {}
void DeviceDriver::wait(StreamRef, EventRef) {}
bool DeviceDriver::query(EventRef) { return true; }
void DeviceDriver::synchronize(EventRef) {}
double DeviceDriver::elapsed_ms(EventRef, EventRef) { return 0; }

void DeviceDriver::enqueue(StreamRef, std::function<void()> work) { work(); }

void DeviceDriver::set_threads(int) {}
int DeviceDriver::threads() const { return 1; }

bool DeviceDriver::begin_kernel(StreamRef) { return true; }

void DeviceDriver::begin_capture(StreamRef) { throw Error(properties().name + " has no graphs to capture work in"); }
GraphRef DeviceDriver::end_capture(StreamRef) { throw Error(properties().name + " has no graphs to capture work in"); }
bool DeviceDriver::capturing(StreamRef) { return false; }
void DeviceDriver::launch(GraphRef, StreamRef) { throw Error(properties().name + " has no graphs to run"); }
void DeviceDriver::destroy_graph(GraphRef) noexcept {}

bool DeviceDriver::share_memory_with(int) { return false; }

Backend::~Backend() = default;
OptionSchema Backend::options() const { return {}; }
void Backend::configure(const Options&) {}
std::string Backend::why_unavailable() const { return {}; }
std::string Backend::kernels_like() const { return {}; }
bool Backend::takes_host_memory(const Options&) const { return false; }

}  // namespace tenon
