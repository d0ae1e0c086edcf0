// The device resolver and the set-up that it works from.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/device/device_state.h>
#include <tenon/device/device_use.h>
#include <tenon/device/devices.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/memory/stack/oom.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/log.h>
#include <tenon/runtime/plugins/plugins.h>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

namespace tenon {

namespace {

struct Setup {
  std::mutex mutex;
  std::map<std::string, Options, std::less<>> backend_options;
  std::map<std::string, StackConfig, std::less<>> allocators;
  std::vector<std::string> configured;  ///< kinds whose backend has got its options, in that order
};
Setup& setup() {
  static auto& instance = *new Setup;
  return instance;
}

bool is_configured(const Setup& all, std::string_view kind) {
  return std::find(all.configured.begin(), all.configured.end(), kind) != all.configured.end();
}

/// What is wrong with the name of a device that is not there, and what to do.
std::string no_device(std::string_view kind, int index, int count, const Backend& backend) {
  if (count == 0) {
    const std::string reason = backend.why_unavailable();
    return fmt::format(
        "no {} device: {}; set device.name to one that `tenon devices` lists, as \"{}\"; `tenon doctor` says what {} "
        "needs",
        kind, reason.empty() ? "the backend found none" : reason, kCPU.name(), kind);
  }
  const auto is_count = [](const OptionSpec& option) { return option.name == "count"; };
  const OptionSchema options = backend.options();
  return fmt::format("no device {0}:{1}: there {2} {3} of this kind, {4}; name {5}{6}", kind, index,
                     count == 1 ? "is" : "are", count,
                     count == 1 ? fmt::format("{}:0", kind) : fmt::format("{0}:0 to {0}:{1}", kind, count - 1),
                     count == 1 ? "that" : "one of them",
                     std::ranges::any_of(options, is_count) ? fmt::format(", or raise device.{}.count", kind) : "");
}

std::unique_ptr<DeviceState> open_device(Device device) {
  const std::string kind(device.type().name());
  Backend& backend = configured_backend(kind);
  const int index = device.has_index() ? device.index() : 0;
  const int count = backend.device_count();
  if (index >= count) throw ConfigError(no_device(kind, index, count, backend));
  DeviceDriver& driver = backend.device(index);
  std::optional<StackConfig> config;
  {
    const std::lock_guard lock(setup().mutex);
    if (const auto found = setup().allocators.find(kind); found != setup().allocators.end()) config = found->second;
  }
  if (!config) config = allocator_from_spec(kDefaultAllocator);
  const std::string name = config->policy.name;
  auto state = std::make_unique<DeviceState>(Device(device.type(), static_cast<DeviceIndex>(index)), driver);
  state->swap_allocator(AllocatorStack::make(driver.memory(), *config));
  log_line(plugin::LogLevel::kInfo,
           fmt::format("opened {}:{} ({}) with allocator {}", kind, index, driver.properties().name, name));
  return state;
}

/// "process 4711 (python) has 2.9 GiB, …": those with the most of it.
std::string processes_on(const std::string& device) {
  const Device which(device);
  const std::string kind(which.type().name());
  auto* const reporter = dynamic_cast<ReportsUse*>(&configured_backend(kind));
  if (reporter == nullptr) return {};
  constexpr std::size_t kMost = 3;
  std::vector<std::string> words;
  for (const ProcessUse& process : reporter->look(which.has_index() ? which.index() : 0).processes) {
    if (process.pid == ::getpid() || words.size() == kMost) continue;
    words.push_back(fmt::format("process {}{} has {}", process.pid,
                                process.command.empty() ? "" : " (" + process.command + ")",
                                format_bytes(process.bytes)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

[[maybe_unused]] const bool kOtherProcessesAreNamed = (set_other_processes(&processes_on), true);
[[maybe_unused]] const bool kDeviceResolverIsSet = (set_device_resolver(&open_device), true);
[[maybe_unused]] const bool kDeviceCounterIsSet =
    (set_device_counter([](DeviceType kind) { return configured_backend(std::string(kind.name())).device_count(); }),
     true);

}  // namespace

Backend& configured_backend(const std::string& kind) {
  Backend& backend = find_backend(kind);
  Setup& all = setup();
  std::unique_lock lock(all.mutex);
  if (is_configured(all, kind)) return backend;
  const auto given = all.backend_options.find(kind);
  const Options options = given != all.backend_options.end() ? given->second : Options(backend.options());
  all.configured.push_back(kind);
  lock.unlock();
  try {
    backend.configure(options);
    if (const std::string like = backend.kernels_like(); !like.empty()) {
      find_backend(like);  // its plugin brings the kernels
      share_kernels(DeviceType::named(kind), DeviceType::named(like));
    }
  } catch (...) {
    lock.lock();
    std::erase(all.configured, kind);  // other options may suit it
    throw;
  }
  return backend;
}

void check_index(Device device, const Options& options) {
  const bool has_count = std::ranges::any_of(options.schema(), [](const OptionSpec& o) { return o.name == "count"; });
  if (!device.has_index() || (!has_count && !device.is_cpu())) return;
  const int count = has_count ? static_cast<int>(options.integer("count")) : 1;
  const std::string kind(device.type().name());
  if (device.index() >= count) throw ConfigError(no_device(kind, device.index(), count, find_backend(kind)));
}

Options backend_options(std::string_view kind) {
  Setup& all = setup();
  {
    const std::lock_guard lock(all.mutex);
    const auto given = all.backend_options.find(kind);
    if (given != all.backend_options.end()) return given->second;
  }
  return Options(find_backend(std::string(kind)).options());  // loading a plugin may take a while, and may come here
}

void set_backend_options(std::string_view kind, Options options) {
  Setup& all = setup();
  const std::lock_guard lock(all.mutex);
  if (is_configured(all, kind)) {
    throw ConfigError(fmt::format("the options of device kind '{}' come too late: one of its devices is open", kind));
  }
  all.backend_options.insert_or_assign(std::string(kind), std::move(options));
}

void refuse_forgotten_unit(std::string_view name, const OptionValue& written) {
  std::string problem;
  if (const auto* const text = std::get_if<std::string>(&written)) problem = forgotten_unit(*text);
  if (const auto* const number = std::get_if<std::int64_t>(&written))
    problem = forgotten_unit(fmt::format("{}", *number));
  if (!problem.empty()) throw ConfigError(fmt::format("option '{}': {}", name, problem));
}

void set_backend_option(std::string_view kind, std::string_view name, OptionValue value) {
  Options options = backend_options(kind);
  try {
    options.set(name, std::move(value));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("device.{}: {}", kind, error.what()));
  }
  set_backend_options(kind, std::move(options));
}

void set_allocator(std::string_view kind, StackConfig config) {
  for (const DeviceState* state : open_devices()) {
    if (state->device().type().name() != kind) continue;
    throw ConfigError(
        fmt::format("allocator '{}' comes too late for {}, which is open and served by '{}': set it before the first "
                    "tensor is made "
                    "there, call tenon::shutdown() first, or put it in service with tenon::swap_allocator()",
                    config.policy.name, state->device().str(), state->allocator().config().policy.name));
  }
  const std::lock_guard lock(setup().mutex);
  setup().allocators.insert_or_assign(std::string(kind), std::move(config));
}

void shutdown() {
  close_devices();
  std::vector<std::string> kinds;
  {
    const std::lock_guard lock(setup().mutex);
    kinds.swap(setup().configured);
  }
  for (auto kind = kinds.rbegin(); kind != kinds.rend(); ++kind) find_backend(*kind).shutdown();
}

}  // namespace tenon
