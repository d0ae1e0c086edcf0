// The open devices of the process, opened on first use; which device and which stream a thread means.
#include <tenon/core/error.h>
#include <tenon/device/closing.h>
#include <tenon/device/device_state.h>
#include <tenon/device/with_index.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/pinned_cache.h>

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace tenon {

namespace {

struct OpenDevices {
  // Recursive: opening one device may open another, as pinned memory does with the host's.
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<DeviceState>> in_order;
  std::array<std::array<std::atomic<DeviceState*>, kMaxDevicesPerType>, kMaxDeviceTypes> by_index{};
  std::atomic<DeviceResolver> resolver{nullptr};
  std::atomic<DeviceOpened> opened{nullptr};
};

OpenDevices& open() {
  static auto* all = new OpenDevices;  // never destroyed: static tensors are freed late
  return *all;
}

DeviceState& open_device(Device device) {
  OpenDevices& all = open();
  std::lock_guard lock(all.mutex);
  std::atomic<DeviceState*>& slot = all.by_index[device.type().id()][static_cast<std::size_t>(device.index())];
  if (DeviceState* state = slot.load(std::memory_order_acquire)) return *state;
  const DeviceResolver resolver = all.resolver.load();
  if (resolver == nullptr) {
    throw Error(fmt::format("device '{}' cannot be opened: no backend is loaded; load a plugin that supplies kind '{}'",
                            device.str(), device.type().name()));
  }
  std::unique_ptr<DeviceState> state = resolver(device);
  if (state == nullptr)
    throw Error(fmt::format("device '{}' cannot be opened: its backend returned nothing", device.str()));
  all.in_order.push_back(std::move(state));
  DeviceState& opened = *all.in_order.back();
  slot.store(&opened, std::memory_order_release);
  if (const DeviceOpened told = all.opened.load()) told(device);
  return opened;
}

}  // namespace

struct DeviceState::Parts {
  std::shared_ptr<History> history = std::make_shared<History>();
  std::mutex mutex;
  std::vector<std::shared_ptr<AllocatorStack>> in_service;  ///< back() is current
  std::shared_ptr<AllocatorStack> pinned;
};

DeviceState::DeviceState(Device device, DeviceDriver& driver)
    : device_(device), driver_(driver), parts_(std::make_unique<Parts>()), history_(parts_->history.get()) {}
DeviceState::~DeviceState() = default;

std::shared_ptr<AllocatorStack> DeviceState::shared_allocator() const {
  std::lock_guard lock(parts_->mutex);
  return parts_->in_service.empty() ? nullptr : parts_->in_service.back();
}

std::shared_ptr<AllocatorStack> DeviceState::swap_allocator(std::shared_ptr<AllocatorStack> next) {
  if (next == nullptr) throw Error(fmt::format("no allocator to put in service on {}", device_.str()));
  std::lock_guard lock(parts_->mutex);
  std::shared_ptr<AllocatorStack> old = parts_->in_service.empty() ? nullptr : parts_->in_service.back();
  // What may throw comes first: whoever has blocks out stays in the list.
  next->attach_history(parts_->history);
  next->set_reserved_limit(memory_limit());
  parts_->in_service.reserve(parts_->in_service.size() + 1);
  // One that comes back moves to the end: the list holds each of them once.
  std::erase(parts_->in_service, next);
  parts_->in_service.push_back(next);
  current_.store(next.get(), std::memory_order_release);
  return old;
}

std::vector<std::shared_ptr<AllocatorStack>> DeviceState::allocators() const {
  std::lock_guard lock(parts_->mutex);
  return parts_->in_service;
}

void DeviceState::set_memory_limit(std::size_t limit_bytes) {
  std::lock_guard lock(parts_->mutex);
  memory_limit_.store(limit_bytes, std::memory_order_relaxed);
  for (const auto& allocator : parts_->in_service) allocator->set_reserved_limit(limit_bytes);
}

std::shared_ptr<AllocatorStack> DeviceState::pinned_host_allocator() {
  {
    std::lock_guard lock(parts_->mutex);
    if (parts_->pinned != nullptr) return parts_->pinned;
  }
  MemorySource* memory = driver_.pinned_host_memory();
  if (memory == nullptr) return nullptr;
  const std::shared_ptr<History> of_host = device_state(kCPU).parts_->history;  // may open it: without the lock
  std::lock_guard lock(parts_->mutex);
  if (parts_->pinned != nullptr) return parts_->pinned;
  const AllocatorInfo& policy = pinned_cache();
  parts_->pinned = AllocatorStack::make(*memory, {.policy = policy, .options = Options(policy.options), .layers = {}});
  parts_->pinned->attach_history(std::shared_ptr<History>(of_host, &of_host->page_locked()));
  return parts_->pinned;
}

DeviceState& device_state(Device device) {
  const Device exact = with_index(device);
  if (exact.type().id() >= kMaxDeviceTypes || exact.index() >= kMaxDevicesPerType) {
    throw Error(fmt::format("no device '{}': indices go from 0 to {}", exact.str(), kMaxDevicesPerType - 1));
  }
  const auto& slot = open().by_index[exact.type().id()][static_cast<std::size_t>(exact.index())];
  if (DeviceState* state = slot.load(std::memory_order_acquire)) [[likely]]
    return *state;
  return open_device(exact);
}

std::vector<DeviceState*> open_devices() {
  OpenDevices& all = open();
  std::lock_guard lock(all.mutex);
  std::vector<DeviceState*> devices;
  for (const auto& state : all.in_order) devices.push_back(state.get());
  return devices;
}

void set_device_resolver(DeviceResolver resolver) { open().resolver.store(resolver); }
void set_device_opened(DeviceOpened told) { open().opened.store(told); }

namespace {

struct Listeners {
  std::mutex mutex;
  std::vector<std::shared_ptr<std::function<void()>>> all;  ///< under mutex
};

Listeners& listeners() {
  static auto* const instance = new Listeners;  // plugins may end after it would
  return *instance;
}

}  // namespace

ClosingHandle::ClosingHandle(std::function<void()> closing)
    : closing_(std::make_shared<std::function<void()>>(std::move(closing))) {
  const std::lock_guard lock(listeners().mutex);
  listeners().all.push_back(closing_);
}

ClosingHandle::~ClosingHandle() {
  const std::lock_guard lock(listeners().mutex);
  std::erase(listeners().all, closing_);
}

void close_devices() {
  std::vector<std::shared_ptr<std::function<void()>>> told;
  {
    const std::lock_guard lock(listeners().mutex);
    told = listeners().all;
  }
  for (const auto& closing : told) (*closing)();
  OpenDevices& all = open();
  std::lock_guard lock(all.mutex);
  while (!all.in_order.empty()) {
    const Device device = all.in_order.back()->device();
    all.by_index[device.type().id()][static_cast<std::size_t>(device.index())].store(nullptr,
                                                                                     std::memory_order_release);
    all.in_order.pop_back();
  }
}

}  // namespace tenon
