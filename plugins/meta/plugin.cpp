// The meta backend: tensors with sizes, dtypes and strides but no data, as on PyTorch's device of this name. What they
// ask for is counted by the allocator in service, and takes no memory anywhere.
#include "driver.h"

#include <tenon/core/units.h>
#include <tenon/plugin/backend_plugin.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

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

  int device_count() override { return static_cast<int>(drivers_.size()); }

  DeviceDriver& device(int index) override {
    std::lock_guard lock(mutex_);
    if (index < 0 || index >= device_count()) {
      throw Error("there is no device meta:" + std::to_string(index) + ": " + std::to_string(device_count()) +
                  " are configured; raise device.meta.count");
    }
    auto& driver = drivers_[static_cast<std::size_t>(index)];
    if (driver == nullptr) driver = std::make_unique<MetaDriver>("meta:" + std::to_string(index), capacity_bytes_);
    return *driver;
  }

  void shutdown() noexcept override {
    for (auto& driver : drivers_) driver.reset();
  }

  /// None of them runs, but operators choose their way by the kernels that there are: a step asks for what it asks for
  /// on the CPU.
  std::string kernels_like() const override { return "cpu"; }

 private:
  std::size_t capacity_bytes_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<MetaDriver>> drivers_;
};

void register_meta(plugin::Host& host) { host.add_backend(std::make_unique<MetaBackend>()); }

}  // namespace
}  // namespace tenon::meta

TENON_PLUGIN(meta, "0.1.0", &tenon::meta::register_meta)
