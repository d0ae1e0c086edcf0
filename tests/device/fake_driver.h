// A device for tests: memory of addresses only, several indices, everything synchronous.
#pragma once

#include <tenon/device/device_state.h>
#include <tenon/memory/sources/address_only_source.h>

#include <memory/test_policy.h>

#include <map>
#include <memory>

namespace tenon::test {

class FakeDriver final : public DeviceDriver {
 public:
  explicit FakeDriver(std::size_t capacity_bytes)
      : source_({.device = "fake", .capacity_bytes = capacity_bytes}), capacity_bytes_(capacity_bytes) {}
  DeviceProperties properties() const override { return {.name = "fake", .capacity_bytes = capacity_bytes_}; }
  MemorySource& memory() override { return source_; }
  void copy(void*, const void*, std::size_t, CopyKind, StreamRef) override {}
  void fill(void*, std::uint8_t, std::size_t, StreamRef) override {}
  MemorySource* pinned_host_memory() override { return &pinned_; }
  bool begin_kernel(StreamRef) override { return computes(); }
  std::size_t used_bytes() const { return source_.used_bytes(); }

  /// False: a device of addresses only.
  static bool& computes() {
    static bool yes = true;
    return yes;
  }

 private:
  AddressOnlySource source_;
  AddressOnlySource pinned_;
  std::size_t capacity_bytes_;
};

/// Opens devices of kind "fake" with 100 MiB each, for as long as it lives; 0 bytes are a device without a capacity.
class FakeDevices {
 public:
  explicit FakeDevices(std::size_t capacity_bytes = std::size_t{100} * 1024 * 1024) {
    drivers().clear();
    opened() = 0;
    capacity() = capacity_bytes;
    set_device_resolver([](Device device) {
      ++opened();
      auto& driver = drivers()[key(device)];
      driver = std::make_unique<FakeDriver>(capacity());
      auto state = std::make_unique<DeviceState>(device, *driver);
      state->swap_allocator(make_stack(driver->memory()));
      return state;
    });
  }
  ~FakeDevices() {
    close_devices();
    set_device_resolver(nullptr);
    drivers().clear();
  }
  static int& opened() {
    static int count = 0;
    return count;
  }
  static std::size_t& capacity() {
    static std::size_t bytes = 0;
    return bytes;
  }
  /// Those of kind "fake" by their index; the resolver is asked for other kinds too.
  static std::map<int, std::unique_ptr<FakeDriver>>& drivers() {
    static std::map<int, std::unique_ptr<FakeDriver>> all;
    return all;
  }

 private:
  static int key(Device device) {
    const bool is_fake = device.type() == DeviceType::named("fake");
    return is_fake ? device.index() : kMaxDevicesPerType * (1 + device.type().id()) + device.index();
  }
};

inline Device fake(int index = 0) { return {DeviceType::named("fake"), static_cast<DeviceIndex>(index)}; }

}  // namespace tenon::test
