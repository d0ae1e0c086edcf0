// Plugins at run time: loading them, and finding the allocators, backends and communicators that they supplied.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/core/export.h>
#include <tenon/device/device_driver.h>
#include <tenon/memory/factory.h>
#include <tenon/runtime/plugins/sha256.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// A loaded plugin, as results record it.
struct LoadedPlugin {
  std::string name;
  std::string version;
  std::filesystem::path path;           ///< absolute
  std::vector<std::string> allocators;  ///< that it supplied
  std::vector<std::string> backends;    ///< device kinds that it supplied
  std::size_t kernels = 0;
  std::vector<std::string> communicators;    ///< that it supplied
  std::shared_ptr<const FileDigest> digest;  ///< of the file that was loaded

  /// Of the file, as sha256sum prints it. Throws Error when it cannot be read.
  [[nodiscard]] const std::string& sha256() const { return digest->text(); }
};

/// Loads a plugin by name ("caching") or path ("./mine.so", relative to `base` or else the current folder) and
/// registers what it supplies; loading it again returns the same record. It is never unloaded. Throws PluginError: see
/// plugin_file.h and plugin_search.h; a plugin that fails to register leaves nothing behind.
TENON_API const LoadedPlugin& load_plugin(std::string_view name_or_path, const std::filesystem::path& base = {});

/// In the order of loading.
TENON_API std::vector<LoadedPlugin> loaded_plugins();

/// An allocator by name, or by path to the plugin that supplies it; loads what is needed. A name that no NAME.so
/// supplies is looked for in every plugin of the search folders. Throws ConfigError for an unknown name (the nearest is
/// named), PluginError when its plugin would not load. The reference stays valid.
TENON_API const AllocatorInfo& find_allocator(std::string_view name_or_path, const std::filesystem::path& base = {});

/// The allocators of the plugin at that path, in the order of their names. Like find_allocator, it takes a second file
/// that supplies a name which is taken, so that two builds of one plugin stand side by side: the name goes on meaning
/// the first, the path means this one.
TENON_API std::vector<const AllocatorInfo*> allocators_of_file(std::string_view path,
                                                               const std::filesystem::path& base = {});

/// Names supplied by loaded plugins, sorted.
TENON_API std::vector<std::string> allocator_names();
/// Those of them that are tried where none is named, and may be recommended: all but baselines.
TENON_API std::vector<std::string> default_allocators();

/// A device kind's backend; loads the plugin of that name when needed. Throws ConfigError for an unknown kind.
TENON_API Backend& find_backend(std::string_view kind);
TENON_API std::vector<std::string> backend_names();

/// A communicator by name; loads the plugin of that name when needed. Throws ConfigError for an unknown name. The
/// reference stays valid.
TENON_API const CommunicatorInfo& find_communicator(std::string_view name);
TENON_API std::vector<std::string> communicator_names();

/// Loads every plugin of the search folders that loads; those that do not are returned with the reason.
struct PluginProblem {
  std::filesystem::path path;
  std::string problem;
};
TENON_API std::vector<PluginProblem> load_all_plugins();

}  // namespace tenon
