// Finding a communicator and making it.
#include <tenon/runtime/process_group.h>

#include <tenon/core/spec_names.h>
#include <tenon/device/devices.h>
#include <tenon/runtime/config/section_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace tenon::distributed {

std::shared_ptr<Communicator> init_process_group(std::string_view name, const Options& options) {
  const RankEnvironment ranks = rank_environment();
  return find_communicator(name).create({.ranks = ranks, .options = options});
}

std::shared_ptr<Communicator> init_process_group(std::string_view spec) {
  const std::string_view name = word_of_spec(spec);
  Options options(find_communicator(name).options);
  const std::string settings(name.size() < spec.size() ? spec.substr(name.size() + 1) : std::string_view());
  for (const std::string& setting : split_list(settings)) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos)
      throw ConfigError(
          fmt::format("communicator \"{}\": expected NAME=VALUE, as in NAME:timeout=60, not \"{}\"", spec, setting));
    options.set_text(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return init_process_group(name, options);
}

Device device_of_rank(const ExperimentConfig& config) {
  const RankEnvironment ranks = rank_environment();
  if (!config.names_device_kind || ranks.size == 1) return config.device;
  const int count = std::max(1, static_cast<int>(device_count(config.device.type())));
  return Device(config.device.type(), static_cast<DeviceIndex>(ranks.local_rank % count));
}

std::vector<Device> devices_of_rank(const ExperimentConfig& config) {
  if (config.devices.size() < 2) return {device_of_rank(config)};
  const RankEnvironment ranks = rank_environment();
  const auto each = static_cast<int>(config.devices.size());
  std::vector<Device> devices;
  for (const Device& device : config.devices) {
    const int own = device.index() + ranks.local_rank * each;
    const bool has_all = static_cast<int>(device_count(device.type())) >= ranks.local_size * each;
    devices.emplace_back(device.type(), has_all ? static_cast<DeviceIndex>(own) : device.index());
  }
  return devices;
}

}  // namespace tenon::distributed
