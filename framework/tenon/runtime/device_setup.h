// The devices and allocators of this process, set up before or without a configuration. device_state() of a device that
// is not open yet comes here: the backend plugin of its kind is loaded, the device opened, its allocator put in
// service.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/device/device_driver.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <string>
#include <string_view>

namespace tenon {

/// Those that the backend of a device kind has or will get: what was set, else its defaults.
TENON_API Options backend_options(std::string_view kind);

/// Options of a device kind's backend. Throws ConfigError once one of its devices is open.
TENON_API void set_backend_options(std::string_view kind, Options options);

/// The option by which backends are told how much memory their devices have.
inline constexpr std::string_view kCapacityOption = "capacity";

/// Throws ConfigError where a value for that option, as somebody wrote it, lacks its unit: see forgotten_unit().
void refuse_forgotten_unit(std::string_view name, const OptionValue& written);

/// One of them, by name and value as in TOML: set_backend_option("simulated", "capacity", "24GiB"). The others stay as
/// they were set. Throws ConfigError for an unknown name, a wrong type or range, and once one of its devices is open.
TENON_API void set_backend_option(std::string_view kind, std::string_view name, OptionValue value);

/// The backend of a device kind with its options set, loaded when needed.
TENON_API Backend& configured_backend(const std::string& kind);

/// Throws ConfigError, as opening it does, for a device that no machine has with these options of its backend: where
/// they have a `count` one beyond that, and of the host any but the first. Other kinds' devices are up to the machine.
TENON_API void check_index(Device device, const Options& options);

/// The allocator of devices of that kind that are opened from now on; without it, kDefaultAllocator (allocator_spec.h).
/// Throws ConfigError once one of them is open: swap_allocator() (device/memory_api.h) puts another one in service
/// there.
TENON_API void set_allocator(std::string_view kind, StackConfig config);

/// Closes every device and destroys what the backends made, in reverse order of loading; plugins stay loaded, and
/// devices can be opened again. Storages must be gone.
TENON_API void shutdown();

}  // namespace tenon
