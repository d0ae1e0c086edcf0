// The simulated backend: devices of any number and capacity on any machine, for tests, experiments and replays.
#include "cost_model.h"
#include "counters.h"
#include "driver.h"

#include <tenon/core/units.h>
#include <tenon/device/lazy_drivers.h>
#include <tenon/plugin/backend_plugin.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace tenon::simulated {
namespace {

class SimulatedBackend final : public Backend, public ReportsUse {
 public:
  std::string name() const override { return "simulated"; }
  std::string summary() const override { return "devices of any capacity in host memory, or with addresses alone"; }

  OptionSchema options() const override {
    OptionSchema options = {
        OptionSpec::integer("count", 1, "number of devices").range(std::int64_t{1}, std::int64_t{kMaxDevicesPerType}),
        OptionSpec::size("capacity", kDefaultCapacity,
                         "bytes of each device, a preset's where it is not set; 0 = unlimited"),
        OptionSpec::text("mode", "backed", "backed: kernels run, on host memory; address-only: nothing is computed")
            .one_of({"backed", "address-only"}),
        OptionSpec::size("page", 2 * MiB, "granularity of virtual memory").range(4 * KiB, GiB),
        OptionSpec::integer("latency_us", 0, "microseconds that each call to the device's memory takes")
            .range(std::int64_t{0}, std::int64_t{1'000'000}),
        OptionSpec::real("create_us_per_mib", 0, "what making pages takes besides; 4 on an H100").range(0., 1e6),
        OptionSpec::real("map_us_per_mib", 0, "what mapping pages takes besides; 11.6 on an H100").range(0., 1e6),
        OptionSpec::real("unmap_us_per_mib", 0, "what unmapping pages takes besides; 7.8 on an H100").range(0., 1e6),
        OptionSpec::real("destroy_us_per_mib", 0, "what giving pages back takes besides; 4.8 on an H100")
            .range(0., 1e6),
        OptionSpec::integer("fail_at", 0, "the n-th call for memory finds the device exhausted; 0 = none")
            .range(std::int64_t{0}, std::int64_t{1} << 60),
        OptionSpec::integer("fail_every", 0, "every k-th call for memory finds the device exhausted; 0 = none")
            .range(std::int64_t{0}, std::int64_t{1} << 60),
    };
    for (OptionSpec& option : cost_model_options()) options.push_back(std::move(option));
    return options;
  }

  void configure(const Options& options) override {
    config_.page_bytes = options.size("page");
    config_.backed = options.text("mode") == "backed";
    config_.costs = cost_model_of(options);
    CallCosts costs = CallCosts::of_each_call(static_cast<double>(options.integer("latency_us")));
    costs.create.mib = options.real("create_us_per_mib");
    costs.map.mib = options.real("map_us_per_mib");
    costs.unmap.mib = options.real("unmap_us_per_mib");
    costs.destroy.mib = options.real("destroy_us_per_mib");
    const bool says_none = options.is_default("latency_us") && options.is_default("create_us_per_mib") &&
                           options.is_default("map_us_per_mib") && options.is_default("unmap_us_per_mib") &&
                           options.is_default("destroy_us_per_mib");
    if (says_none && config_.costs.calls) costs = *config_.costs.calls;
    config_.capacity_bytes = options.size("capacity");
    if (options.is_default("capacity") && config_.costs.capacity_bytes > 0)
      config_.capacity_bytes = config_.costs.capacity_bytes;
    config_.events = std::make_shared<Events>();
    config_.memory = {
        .costs = costs, .fail_at = options.integer("fail_at"), .fail_every = options.integer("fail_every")};
    drivers_.resize(static_cast<std::size_t>(options.integer("count")));
  }

  int device_count() override { return drivers_.count(); }

  DeviceDriver& device(int index) override {
    return drivers_.get(index, [this, index](const std::string& device) {
      if (counters_ == nullptr) counters_ = std::make_unique<SharedCounters>(drivers_.count());
      DriverConfig config = config_;
      config.device = device;
      config.counters = &counters_->of(index);
      return std::make_unique<SimulatedDriver>(std::move(config));
    });
  }

  void shutdown() noexcept override {
    drivers_.destroy_all();
    counters_.reset();
  }

  int visible_devices(int own) override { return std::max(own, CountersOfAll::device_count()); }
  DeviceUse look(int index) override { return in_use_.look(index); }

  std::string kernels_like() const override { return "cpu"; }
  bool takes_host_memory(const Options& options) const override { return options.text("mode") == "backed"; }

 private:
  static constexpr std::size_t kDefaultCapacity = 24 * GiB;

  DriverConfig config_;
  std::unique_ptr<SharedCounters> counters_;  ///< while a device is open
  CountersOfAll in_use_;
  LazyDrivers<SimulatedDriver> drivers_{"simulated"};
};

void register_simulated(plugin::Host& host) { host.add_backend(std::make_unique<SimulatedBackend>()); }

}  // namespace
}  // namespace tenon::simulated

TENON_PLUGIN(simulated, "0.1.0", &tenon::simulated::register_simulated)
