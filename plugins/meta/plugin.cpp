// The meta backend: tensors with sizes, dtypes and strides but no data, as on PyTorch's device of this name. What they
// ask for is counted by the allocator in service, and takes no memory anywhere.
#include "driver.h"

#include <tenon/device/lazy_drivers.h>
#include <tenon/plugin/backend_plugin.h>

#include <memory>
#include <string>

namespace tenon::meta {
namespace {

class MetaBackend final : public Backend {
 public:
  std::string name() const override { return "meta"; }
  std::string summary() const override { return "sizes without data: what a program asks for, on no memory"; }

  OptionSchema options() const override {
    return {
        OptionSpec::integer("count", 1, "number of devices").range(std::int64_t{1}, std::int64_t{kMaxDevicesPerType}),
        OptionSpec::size("capacity", 0, "bytes of each device that requests may add up to; 0 = unlimited")};
  }

  void configure(const Options& options) override {
    capacity_bytes_ = options.size("capacity");
    drivers_.resize(static_cast<std::size_t>(options.integer("count")));
  }

  int device_count() override { return drivers_.count(); }

  DeviceDriver& device(int index) override {
    return drivers_.get(
        index, [this](const std::string& device) { return std::make_unique<MetaDriver>(device, capacity_bytes_); });
  }

  void shutdown() noexcept override { drivers_.destroy_all(); }

  /// None of them runs, but operators choose their way by the kernels that there are: a step asks for what it asks for
  /// on the CPU.
  std::string kernels_like() const override { return "cpu"; }

 private:
  std::size_t capacity_bytes_ = 0;
  LazyDrivers<MetaDriver> drivers_{"meta"};
};

void register_meta(plugin::Host& host) { host.add_backend(std::make_unique<MetaBackend>()); }

}  // namespace
}  // namespace tenon::meta

TENON_PLUGIN(meta, "0.1.0", &tenon::meta::register_meta)
